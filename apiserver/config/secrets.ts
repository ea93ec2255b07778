/** Secrets of the API server: apart from the configuration, never logged. */
import { hkdfSync } from 'node:crypto'

const KEY_BYTES = 32

const derived = (masterKey: Buffer, what: string): Buffer =>
  Buffer.from(hkdfSync('sha256', masterKey, '', what, KEY_BYTES))

/** Derives the tokens that follow others in a session. */
export const rotationKeyOf = (masterKey: Buffer): Buffer => derived(masterKey, 'svc session rotation')

/** Makes digests of codes that are too short for plain ones. */
export const codeKeyOf = (masterKey: Buffer): Buffer => derived(masterKey, 'svc sign-in codes')

/** Half of what seals replies that hold a secret; the other half is the client's Idempotency-Key. */
export const sealingKeyOf = (masterKey: Buffer): Buffer => derived(masterKey, 'svc idempotent replies')
