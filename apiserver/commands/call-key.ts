import { createHash } from 'node:crypto'
import type { IdempotencyScope } from '../store/idempotency.ts'
import type { Call } from './call.ts'

/** A key under which a call's answer is kept. */
export interface CallKey extends IdempotencyScope {
  readonly idempotencyKey: string
  readonly fingerprint: Buffer
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The key of a call: its Idempotency-Key, within (who, method, route, path). Undefined when none was sent. */
export const callKeyOf = (call: Call): CallKey | undefined => {
  if (call.idempotencyKey === undefined) return undefined
  const { principal, method, route, pathParams, idempotencyKey, fingerprint } = call
  const place = Object.entries(pathParams).sort(([a], [b]) => (a < b ? -1 : 1))
  const scopeHash = sha256(JSON.stringify([principal.userId ?? principal.credentialId, method, route, place]))
  return { scopeHash, keyHash: sha256(idempotencyKey), idempotencyKey, fingerprint }
}
