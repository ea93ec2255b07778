/**
 * Bearer tokens that end in R43 + C6: 43 base62 characters drawn at random (256 bits) and 6 base62 characters of the CRC-32
 * of all before. The checksum lets a scanner, and our cheap gate, tell a token from a look-alike without asking anybody.
 *
 * personal `svc_pat_` R43 C6 · agent `svc_agt_` summary `_` R43 C6 · organization API key `svck_` R43 C6
 */
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { API_KEY_START, tokenStart } from './token-words.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 43
const CHECK_LENGTH = 6
const SHOWN_RANDOM = 8
const MAX_SUMMARY = 96

const PERSONAL_START = tokenStart('pat')
const AGENT_START = tokenStart('agt')

const SECRET = `[0-9A-Za-z]{${RANDOM_LENGTH + CHECK_LENGTH}}`
const FORMS = {
  personal: new RegExp(`^${PERSONAL_START}${SECRET}$`),
  agent: new RegExp(`^${AGENT_START}[0-9A-Za-z.~-]{1,${MAX_SUMMARY}}_${SECRET}$`),
  api_key: new RegExp(`^${API_KEY_START}${SECRET}$`),
} as const

/** The kinds of credentials that have this form. */
export type TokenKind = keyof typeof FORMS

const base62 = (value: number, length: number): string => {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 62)) text = ALPHABET.charAt(rest % 62) + text
  return text
}

/** Characters drawn evenly: bytes of 248 and above are thrown away, since 248 is the last multiple of 62 in a byte. */
export const randomBase62 = (length: number): string => {
  let text = ''
  while (text.length < length)
    for (const byte of randomBytes(length * 2))
      if (byte < 248 && text.length < length) text += ALPHABET.charAt(byte % 62)
  return text
}

/** Bytes as a number in base 62, cut or filled to a length from its low end: 43 characters hold 256 bits. */
export const base62Of = (bytes: Buffer, length: number): string => {
  let text = ''
  for (let rest = BigInt(`0x${bytes.toString('hex')}`); text.length < length; rest /= 62n)
    text = ALPHABET.charAt(Number(rest % 62n)) + text
  return text
}

const withChecksum = (body: string): string => body + base62(crc32(body), CHECK_LENGTH)

/** What is kept of a token: its SHA-256, 32 bytes. */
export const tokenDigest = (token: string): Buffer => hash('sha256', token, 'buffer')

/** A token just drawn: the secret itself, and what may be kept and shown of it. */
export interface NewToken {
  readonly token: string
  /** The first characters, for display; of 43 random ones at most 8. */
  readonly prefix: string
  readonly digest: Buffer
}

const draw = (start: string, shownRandom: number): NewToken => {
  const token = withChecksum(start + randomBase62(RANDOM_LENGTH))
  return { token, prefix: token.slice(0, start.length + shownRandom), digest: tokenDigest(token) }
}

/** Draws a personal token. */
export const newPersonalToken = (): NewToken => draw(PERSONAL_START, SHOWN_RANDOM)

/** Draws an organization API key. */
export const newApiKey = (): NewToken => draw(API_KEY_START, SHOWN_RANDOM)

/**
 * Draws an agent token. Its first part tells a reader what it may and until when, as a courtesy: what holds stands in the
 * row. The display prefix is that part, so that a client can assert it.
 */
export const newAgentToken = (scopes: readonly string[], expiresAt: Date | undefined): NewToken => {
  const summary = `${AGENT_START}${summaryOf(scopes, expiresAt)}`
  return { ...draw(`${summary}_`, 0), prefix: summary }
}

const legible = (scope: string): string => scope.replaceAll(/[:/]/g, '.')

/** What the scopes and the expiry look like in a token, where neither colon nor slash may stand (RFC 6750 `b64token`). */
const summaryOf = (scopes: readonly string[], expiresAt: Date | undefined): string => {
  const end = expiresAt === undefined ? 'never' : `${expiresAt.toISOString().slice(0, 16).replaceAll(/[-:]/g, '')}Z`
  const expiry = `.exp-${end}`
  const all = scopes.map(legible).join('~')
  const room = MAX_SUMMARY - expiry.length
  if (all.length <= room) return all + expiry
  const first = legible(scopes[0] ?? '')
  const more = scopes.length > 1 ? `~and-${scopes.length - 1}-more` : ''
  // One scope alone can be longer than the room: then its kind and level are told, without the names.
  const short = first.length + more.length <= room ? first : first.replace(/\..*\./, '.')
  return short + more + expiry
}

/** The kind of token that a text has the form and the checksum of; says nothing of whether it exists. No I/O. */
export const tokenKindOf = (text: string): TokenKind | undefined => {
  for (const [kind, form] of Object.entries(FORMS))
    if (form.test(text)) return withChecksum(text.slice(0, -CHECK_LENGTH)) === text ? (kind as TokenKind) : undefined
  return undefined
}
