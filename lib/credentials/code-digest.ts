import { createHmac, timingSafeEqual } from 'node:crypto'

/** The digest of a short code: keyed, since a plain one of six digits is read back in a moment; bound to its address and link. */
export const codeDigest = (key: Buffer, email: string, tokenDigest: Buffer, code: string): Buffer =>
  createHmac('sha256', key)
    .update(JSON.stringify([email, tokenDigest.toString('hex'), code]))
    .digest()

/** Compares digests in the same time wherever they differ. */
export const sameDigest = (one: Buffer, other: Buffer): boolean =>
  one.length === other.length && timingSafeEqual(one, other)
