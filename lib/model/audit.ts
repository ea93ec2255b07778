/** Every `action` an audit event can carry: the specification's eleven, then ours. */
export const AUDIT_ACTIONS = [
  'put_organization',
  'put_member',
  'put_project',
  'create_environment',
  'delete_environment',
  'suspend_environment',
  'resume_environment',
  'run_migrations',
  'register_branch',
  'merge_branch',
  'import',
  'update_environment',
  'renew_environment',
  'rotate_credentials',
  'read_connection',
  'delete_project',
  'remove_member',
  'create_token',
  'revoke_token',
  'create_api_key',
  'revoke_api_key',
  'create_invitation',
  'revoke_invitation',
  'accept_invitation',
  'approve_device',
  'external_change',
] as const
export type AuditAction = (typeof AUDIT_ACTIONS)[number]

/** Every `type` of an event of an account, which concerns no organization. */
export const ACCOUNT_EVENT_TYPES = [
  'create_user',
  'create_token',
  'revoke_token',
  'sign_in',
  'sign_in_failed',
  'locked',
  'sign_out',
  'session_revoked',
  'session_reuse',
  'password_changed',
  'password_reset_requested',
  'password_reset',
  'magic_link_requested',
  'magic_link_used',
  'email_verified',
  'mfa_enrolled',
  'mfa_removed',
  'recovery_code_used',
  'recovery_codes_renewed',
  'setup_completed',
  'device_requested',
  'approve_device',
  'device_denied',
] as const
export type AccountEventType = (typeof ACCOUNT_EVENT_TYPES)[number]

/** The actor of a deletion that expiry asked for. */
export const TTL_ACTOR = 'system:ttl'
