/** What handlers work with, constructed in one place. */
import type { Credentials } from '../runtime/credentials/credentials.ts'
import type { AgentRequests } from './auth/agent-requests.ts'
import type { InvitationDependencies } from './commands/create-invitation.ts'
import type { LoginDependencies } from './commands/login/dependencies.ts'
import type { PlanConfig } from './config/config.ts'
import type { ReadinessCheck } from './http/readiness.ts'
import type { HandlersOver } from './routes/handler.ts'

export interface ApiContext extends InvitationDependencies {
  readonly agentRequests: AgentRequests
  readonly credentials: Credentials
  readonly login: LoginDependencies
  readonly plan: PlanConfig
  /** PEM of the authority that environments' servers are proved by, where they speak TLS. */
  readonly caCertificate: string | undefined
  /** Where this process reaches those servers, when not by the name that clients are told. */
  readonly tenantAddress: string | undefined
  readonly readiness: Readonly<Record<string, ReadinessCheck>>
  readonly stopping: () => boolean
}

/** The handlers of all routes. */
export type Handlers = HandlersOver<ApiContext>
