/** The handler of each route. */
import type { Handlers } from '../context.ts'
import { createToken } from './account-tokens/create-token.ts'
import { listTokenEvents } from './account-tokens/list-token-events.ts'
import { listTokens } from './account-tokens/list-tokens.ts'
import { revokeToken } from './account-tokens/revoke-token.ts'
import { createApiKey } from './api-keys/create-api-key.ts'
import { listApiKeys } from './api-keys/list-api-keys.ts'
import { revokeApiKey } from './api-keys/revoke-api-key.ts'
import { listAuditEvents } from './audit-events/list-audit-events.ts'
import { verifyAuditEvents } from './audit-events/verify-audit-events.ts'
import { approveDevice } from './device/approve-device.ts'
import { denyDevice } from './device/deny-device.ts'
import { getDeviceRequest } from './device/get-device-request.ts'
import { pollDeviceToken } from './device/poll-device-token.ts'
import { requestDeviceCode } from './device/request-device-code.ts'
import { createEnvironment } from './environments/create-environment.ts'
import { deleteEnvironment } from './environments/delete-environment.ts'
import { getConnection } from './environments/get-connection.ts'
import { getEnvironment } from './environments/get-environment.ts'
import { getUsage } from './environments/get-usage.ts'
import { listEnvironments } from './environments/list-environments.ts'
import { listOperations } from './environments/list-operations.ts'
import { renewEnvironment } from './environments/renew-environment.ts'
import { resumeEnvironment } from './environments/resume-environment.ts'
import { rotateCredentials } from './environments/rotate-credentials.ts'
import { suspendEnvironment } from './environments/suspend-environment.ts'
import { updateEnvironment } from './environments/update-environment.ts'
import { getHealth } from './health/get-health.ts'
import { getReadiness } from './health/get-readiness.ts'
import { createInvitation } from './invitations/create-invitation.ts'
import { listInvitations } from './invitations/list-invitations.ts'
import { revokeInvitation } from './invitations/revoke-invitation.ts'
import { acceptInvitation } from './login/accept-invitation.ts'
import { beginTotp } from './login/begin-totp.ts'
import { changePassword } from './login/change-password.ts'
import { completePasswordReset } from './login/complete-password-reset.ts'
import { confirmTotp } from './login/confirm-totp.ts'
import { finishSso } from './login/finish-sso.ts'
import { getMfa } from './login/get-mfa.ts'
import { getSession } from './login/get-session.ts'
import { getSetup } from './login/get-setup.ts'
import { issuePasswordReset } from './login/issue-password-reset.ts'
import { listLoginEvents } from './login/list-login-events.ts'
import { listSessions } from './login/list-sessions.ts'
import { previewInvitation } from './login/preview-invitation.ts'
import { previewMagicLink } from './login/preview-magic-link.ts'
import { previewPasswordReset } from './login/preview-password-reset.ts'
import { removeTotp } from './login/remove-totp.ts'
import { renewRecoveryCodes } from './login/renew-recovery-codes.ts'
import { requestMagicLink } from './login/request-magic-link.ts'
import { requestPasswordReset } from './login/request-password-reset.ts'
import { revokeOtherSessions } from './login/revoke-other-sessions.ts'
import { revokeSession } from './login/revoke-session.ts'
import { setUp } from './login/set-up.ts'
import { signIn } from './login/sign-in.ts'
import { signInMfa } from './login/sign-in-mfa.ts'
import { signOut } from './login/sign-out.ts'
import { startSso } from './login/start-sso.ts'
import { verifyMagicLink } from './login/verify-magic-link.ts'
import { listMembers } from './members/list-members.ts'
import { putMember } from './members/put-member.ts'
import { removeMember } from './members/remove-member.ts'
import { getOperation } from './operations/get-operation.ts'
import { getOrganization } from './organizations/get-organization.ts'
import { listOrganizations } from './organizations/list-organizations.ts'
import { putOrganization } from './organizations/put-organization.ts'
import { deleteProject } from './projects/delete-project.ts'
import { getProject } from './projects/get-project.ts'
import { listProjects } from './projects/list-projects.ts'
import { putProject } from './projects/put-project.ts'
import { deleteSso } from './sso/delete-sso.ts'
import { getSso } from './sso/get-sso.ts'
import { putSso } from './sso/put-sso.ts'

export const HANDLERS: Handlers = {
  acceptInvitation,
  approveDevice,
  beginTotp,
  changePassword,
  completePasswordReset,
  confirmTotp,
  createApiKey,
  createEnvironment,
  createInvitation,
  createToken,
  deleteEnvironment,
  deleteProject,
  deleteSso,
  denyDevice,
  finishSso,
  getConnection,
  getDeviceRequest,
  getEnvironment,
  getHealth,
  getMfa,
  getOperation,
  getOrganization,
  getProject,
  getReadiness,
  getSession,
  getSetup,
  getSso,
  getUsage,
  issuePasswordReset,
  listApiKeys,
  listAuditEvents,
  listEnvironments,
  listInvitations,
  listLoginEvents,
  listMembers,
  listOperations,
  listOrganizations,
  listProjects,
  listSessions,
  listTokenEvents,
  listTokens,
  pollDeviceToken,
  previewInvitation,
  previewMagicLink,
  previewPasswordReset,
  putMember,
  putOrganization,
  putProject,
  putSso,
  removeMember,
  removeTotp,
  renewEnvironment,
  requestDeviceCode,
  requestMagicLink,
  requestPasswordReset,
  renewRecoveryCodes,
  resumeEnvironment,
  revokeApiKey,
  revokeInvitation,
  revokeOtherSessions,
  revokeSession,
  revokeToken,
  rotateCredentials,
  setUp,
  signIn,
  signInMfa,
  signOut,
  startSso,
  suspendEnvironment,
  updateEnvironment,
  verifyAuditEvents,
  verifyMagicLink,
}
