/** Secrets of the API server: apart from the configuration, never logged. */
import { hkdfSync } from 'node:crypto'

const KEY_BYTES = 32

/** Half of what seals replies that hold a secret; the other half is the client's Idempotency-Key. */
export const sealingKeyOf = (masterKey: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', masterKey, '', 'svc idempotent replies', KEY_BYTES))
