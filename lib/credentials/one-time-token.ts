/**
 * Tokens that are spent once, and then prove something: `svc_<word>_` + 43 base62 characters (256 bits). They travel in
 * links, so no checksum makes them longer.
 */
import { type NewToken, randomBase62, tokenDigest } from './token.ts'
import { type TokenWord, tokenStart } from './token-words.ts'

/** What a token is spent on; the word in it. */
export type OneTimeWord = Exclude<TokenWord, 'pat' | 'agt' | 'ses'>

const RANDOM_LENGTH = 43
const SHOWN_RANDOM = 8

/** Draws one. */
export const newOneTimeToken = (word: OneTimeWord): NewToken => {
  const start = tokenStart(word)
  const token = start + randomBase62(RANDOM_LENGTH)
  return { token, prefix: token.slice(0, start.length + SHOWN_RANDOM), digest: tokenDigest(token) }
}

/** Whether a text has the form of one of a kind; says nothing of whether it exists. */
export const isOneTimeToken = (word: OneTimeWord, text: string): boolean =>
  text.length === tokenStart(word).length + RANDOM_LENGTH && new RegExp(`^${tokenStart(word)}[0-9A-Za-z]+$`).test(text)
