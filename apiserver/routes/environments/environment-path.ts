import type { EnvironmentPath } from '../../../lib/model/identifiers.ts'
import type { EnvironmentParams } from '../../contract/environments.ts'

/** The path of an environment from the parameters of its routes. */
export const environmentPath = ({ org, project, env }: EnvironmentParams): EnvironmentPath => ({
  organizationId: org,
  projectId: project,
  environmentId: env,
})
