import { createHash, createHmac } from 'node:crypto'
import type { IdempotencyScope } from '../store/idempotency.ts'
import type { Call } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'

/** A key under which a call's answer is kept. */
export interface CallKey extends IdempotencyScope {
  /** The raw Idempotency-Key. */
  readonly callersKey: string
  /** Of what is asked for: of this key and keyed by ours, so that a dump of the database gives no body away, however guessable. */
  readonly fingerprint: Buffer
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The key of a call: its Idempotency-Key, within (who, method, route, path). Undefined when none was sent. */
export const callKeyOf = (call: Call, { contentKey }: Pick<CommandDependencies, 'contentKey'>): CallKey | undefined => {
  if (call.idempotencyKey === undefined) return undefined
  const { principal, method, route, pathParams, idempotencyKey, contentHash } = call
  const place = Object.entries(pathParams).sort(([a], [b]) => (a < b ? -1 : 1))
  const scopeHash = sha256(JSON.stringify([principal.userId ?? principal.credentialId, method, route, place]))
  const keyHash = sha256(idempotencyKey)
  const fingerprint = createHmac('sha256', contentKey).update(scopeHash).update(keyHash).update(contentHash).digest()
  return { scopeHash, keyHash, callersKey: idempotencyKey, fingerprint }
}
