/**
 * Tokens of sessions: `svc_ses_` + 43 base62 characters (256 bits). The next one is derived from the one in hand, so that
 * all requests and all replicas that rotate at once come to the same: none loses, and nothing secret is kept for it.
 */
import { createHmac } from 'node:crypto'
import { base62Of, type NewToken, randomBase62, tokenDigest } from './token.ts'
import { tokenStart } from './token-words.ts'

const START = tokenStart('ses')
const RANDOM_LENGTH = 43
const SHOWN_RANDOM = 8
const FORM = new RegExp(`^${START}[0-9A-Za-z]{${RANDOM_LENGTH}}$`)

const asToken = (random: string): NewToken => {
  const token = START + random
  return { token, prefix: token.slice(0, START.length + SHOWN_RANDOM), digest: tokenDigest(token) }
}

/** Draws the first token of a session. */
export const newSessionToken = (): NewToken => asToken(randomBase62(RANDOM_LENGTH))

/** Whether a text has the form of one; says nothing of whether it exists. */
export const isSessionToken = (text: string): boolean => FORM.test(text)

/** The token that follows one: HMAC-SHA-256 over its generation and itself, with a key of ours. */
export const nextSessionToken = (key: Buffer, current: string, generation: number): NewToken =>
  asToken(base62Of(createHmac('sha256', key).update(`rotate\n${generation}\n${current}`).digest(), RANDOM_LENGTH))
