/**
 * Personal access tokens: `svc_pat_` + 43 base62 characters (256 bits) + 6 base62 characters of the CRC-32 of all before.
 * The checksum lets a scanner, and our cheap gate, tell a token from a look-alike without asking anybody.
 */
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 43
const CHECK_LENGTH = 6
const SHOWN_RANDOM = 8

export const PERSONAL_PREFIX = 'svc_pat_'
const PERSONAL_LENGTH = PERSONAL_PREFIX.length + RANDOM_LENGTH + CHECK_LENGTH
const PERSONAL_FORM = new RegExp(`^${PERSONAL_PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECK_LENGTH}}$`)

const base62 = (value: number, length: number): string => {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 62)) text = ALPHABET.charAt(rest % 62) + text
  return text
}

/** Characters drawn evenly: bytes of 248 and above are thrown away, since 248 is the last multiple of 62 in a byte. */
const randomBase62 = (length: number): string => {
  let text = ''
  while (text.length < length)
    for (const byte of randomBytes(length * 2))
      if (byte < 248 && text.length < length) text += ALPHABET.charAt(byte % 62)
  return text
}

const withChecksum = (body: string): string => body + base62(crc32(body), CHECK_LENGTH)

/** What is kept of a token: its SHA-256, 32 bytes. */
export const tokenDigest = (token: string): Buffer => hash('sha256', token, 'buffer')

/** A token just drawn: the secret itself, and what may be kept and shown of it. */
export interface NewToken {
  readonly token: string
  readonly prefix: string
  readonly digest: Buffer
}

/** Draws a personal token. */
export const newPersonalToken = (): NewToken => {
  const token = withChecksum(PERSONAL_PREFIX + randomBase62(RANDOM_LENGTH))
  return { token, prefix: token.slice(0, PERSONAL_PREFIX.length + SHOWN_RANDOM), digest: tokenDigest(token) }
}

/** Whether a text has the form and the checksum of a personal token; says nothing of whether it exists. */
export const isPersonalToken = (text: string): boolean =>
  text.length === PERSONAL_LENGTH && PERSONAL_FORM.test(text) && withChecksum(text.slice(0, -CHECK_LENGTH)) === text
