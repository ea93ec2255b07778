/** Every endpoint, by operationId. */
import { accountTokenRoutes } from './account-tokens.ts'
import { apiKeyRoutes } from './api-keys.ts'
import { auditEventRoutes } from './audit-events.ts'
import { deviceFlowRoutes } from './device-flow.ts'
import { environmentRoutes } from './environments.ts'
import { healthRoutes } from './health.ts'
import { invitationRoutes } from './invitations.ts'
import { loginEventRoutes } from './login/events.ts'
import { invitationLinkRoutes } from './login/invitations.ts'
import { magicLinkRoutes } from './login/magic-links.ts'
import { mfaRoutes } from './login/mfa.ts'
import { passwordResetRoutes } from './login/password-resets.ts'
import { passwordRoutes } from './login/passwords.ts'
import { sessionRoutes } from './login/sessions.ts'
import { setupRoutes } from './login/setup.ts'
import { ssoLoginRoutes } from './login/sso.ts'
import { memberRoutes } from './members.ts'
import { operationRoutes } from './operations.ts'
import { organizationRoutes } from './organizations.ts'
import { projectRoutes } from './projects.ts'
import { ssoRoutes } from './sso.ts'

export const ROUTES = {
  ...accountTokenRoutes,
  ...apiKeyRoutes,
  ...auditEventRoutes,
  ...deviceFlowRoutes,
  ...environmentRoutes,
  ...healthRoutes,
  ...loginEventRoutes,
  ...invitationLinkRoutes,
  ...invitationRoutes,
  ...magicLinkRoutes,
  ...memberRoutes,
  ...mfaRoutes,
  ...operationRoutes,
  ...organizationRoutes,
  ...passwordResetRoutes,
  ...passwordRoutes,
  ...projectRoutes,
  ...sessionRoutes,
  ...setupRoutes,
  ...ssoLoginRoutes,
  ...ssoRoutes,
}

/** The routes' table type: handlers and policy rows are typed from it. */
export type Routes = typeof ROUTES
