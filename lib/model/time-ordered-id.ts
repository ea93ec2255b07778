import { randomBytes } from 'node:crypto'

// Crockford's base32 in lower case: no i, l, o, u, so that an id read aloud or copied by hand stays itself.
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_CHARACTERS = 10
const RANDOM_BYTES = 10

/** What an id is of; the word before its underscore. */
export type IdPrefix = 'inv' | 'key' | 'let' | 'op' | 'rot' | 'ses' | 'tok' | 'usr'

const encode = (value: bigint, length: number): string => {
  let text = ''
  for (let rest = value; text.length < length; rest >>= 5n) text = (ALPHABET[Number(rest & 31n)] ?? '') + text
  return text
}

/** A new id such as `op_06dm3qz5hx7n0c8k2v4r9w1tbe`: 48 bits of milliseconds, then 80 random ones. Sorts by time. */
export const newId = (prefix: IdPrefix, now: number = Date.now()): string => {
  const random = BigInt(`0x${randomBytes(RANDOM_BYTES).toString('hex')}`)
  return `${prefix}_${encode(BigInt(now), TIME_CHARACTERS)}${encode(random, 16)}`
}
