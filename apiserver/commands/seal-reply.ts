/**
 * Seals a reply that holds a secret, so that only a caller who repeats the very same request opens it. The key is made of
 * a key of ours and something of the caller's, of which nothing but a hash is kept: neither a dump of the database nor the
 * master key, nor both together, open it.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

/** What a sealed reply is bound to. */
export interface SealContext {
  /** A key of ours. */
  readonly sealingKey: Buffer
  /** What the caller alone has: a raw Idempotency-Key, a device code. */
  readonly callersKey: string
  /** Who calls what: another scope cannot open it. */
  readonly scopeHash: Buffer
}

const keyOf = ({ sealingKey, callersKey, scopeHash }: SealContext): Buffer =>
  Buffer.from(
    hkdfSync('sha256', Buffer.concat([sealingKey, Buffer.from(callersKey)]), scopeHash, 'svc idempotent reply v1', 32),
  )

/** iv | tag | ciphertext. */
export const sealReply = (body: Buffer, context: SealContext): Buffer => {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, keyOf(context), iv, { authTagLength: TAG_BYTES })
  const sealed = Buffer.concat([cipher.update(body), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed])
}

/** Undefined when it does not open: the master key was changed since, say. */
export const openReply = (sealed: Buffer, context: SealContext): Buffer | undefined => {
  const [iv, rest] = [sealed.subarray(0, IV_BYTES), sealed.subarray(IV_BYTES)]
  if (rest.length < TAG_BYTES) return undefined
  // Without authTagLength Node would accept a tag cut down to four bytes.
  const decipher = createDecipheriv(CIPHER, keyOf(context), iv, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(rest.subarray(0, TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(rest.subarray(TAG_BYTES)), decipher.final()])
  } catch {
    return undefined
  }
}
