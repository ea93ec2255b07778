/** Servers that trust an authority which is no more: no session can tell them of the new one, so they are restarted. Pure. */
import type { AuthorityState } from './authority.ts'
import type { Pod } from './object-types.ts'

/** What the two sides of TLS say of a certificate from an authority that they do not know. */
const UNKNOWN_AUTHORITY: ReadonlySet<string> = new Set([
  'CERT_SIGNATURE_FAILURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
])

/** Whether an admin accepted a new authority after its pod began. */
export const mayTrustFormerOnly = ({ acceptedAt }: AuthorityState, pod: Pod): boolean =>
  acceptedAt !== undefined && Date.parse(pod.metadata?.creationTimestamp ?? '') <= Date.parse(acceptedAt)

/** The same, where it showed that it is from another one. */
export const trustsFormerOnly = (state: AuthorityState, pod: Pod, error: unknown): boolean =>
  mayTrustFormerOnly(state, pod) &&
  error instanceof Error &&
  'code' in error &&
  UNKNOWN_AUTHORITY.has(String(error.code))
