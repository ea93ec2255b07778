import { resumeEnvironment as resume } from '../../commands/resume-environment.ts'
import type { Handlers } from '../../context.ts'
import { environmentPath } from './environment-path.ts'

export const resumeEnvironment: Handlers['resumeEnvironment'] = ({ params, call }, context) =>
  resume(context, call, environmentPath(params))
