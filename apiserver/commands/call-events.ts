/** Audit events of a call: what was called with which parameters, by whom, from where. Never a secret. */
import type { AuditAction } from '../../lib/model/audit.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { NewAccountEvent, NewAuditEvent } from '../store/audit.ts'
import type { Call } from './call.ts'

/** The call's key parameters, and what every event says of its call. */
export const callMetadata = (
  call: Call,
  parameters: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> => ({
  ...parameters,
  credential_kind: call.principal.kind,
  credential_id: call.principal.credentialId,
  request_id: call.requestId,
  client_ip: call.clientIp,
})

/** An event about an organization's things. */
export const callEvent = (
  call: Call,
  action: AuditAction,
  resource: Pick<NewAuditEvent, 'organizationId' | 'resourceKind' | 'resourceId'>,
  parameters?: Readonly<Record<string, unknown>>,
): NewAuditEvent => ({
  ...resource,
  actor: call.principal.subject,
  action,
  metadata: callMetadata(call, parameters),
})

/** How audit events name an environment: `<project>/<environment>`. */
export const environmentResource = (
  path: EnvironmentPath,
): Pick<NewAuditEvent, 'organizationId' | 'resourceKind' | 'resourceId'> => ({
  organizationId: path.organizationId,
  resourceKind: 'environment',
  resourceId: `${path.projectId}/${path.environmentId}`,
})

/** An event about an account. */
export const accountEvent = (
  call: Call,
  type: NewAccountEvent['type'],
  userId: string,
  parameters?: Readonly<Record<string, unknown>>,
): NewAccountEvent => ({
  type,
  userId,
  clientIp: call.clientIp,
  userAgent: call.userAgent,
  metadata: callMetadata(call, parameters),
})
