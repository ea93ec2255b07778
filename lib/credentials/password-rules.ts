/** What a new password has to be. It is taken as it is typed: never cut, trimmed, folded or normalized. */
import { COMMON_PASSWORDS } from './generated/common-passwords.ts'

/** In code points. */
export const PASSWORD_LENGTH = { min: 12, max: 1024 } as const

/** Why a password may not be one. */
export type PasswordFault = 'too_short' | 'too_long' | 'invalid_text' | 'common_password' | 'contains_context'

/** Words of ours that everybody knows. */
const PRODUCT_WORDS = ['svc', 'service', 'postgres', 'password', 'passwort', 'admin', 'database']
/** A shorter word says too little to be one that a password is made of. */
const MIN_WORD = 3

/** The words of an address: all of it, what stands before the @, and each part between its marks. */
const wordsOfAddress = (email: string): string[] => {
  const [local = '', domain = ''] = email.split('@')
  return [email, local, ...local.split(/[^a-z0-9]+/i), ...domain.split('.').slice(0, -1)]
}

/** What guessing somebody's password begins with: the product, their address, their organizations. */
export const contextWords = (email: string | null, organizations: readonly string[] = []): readonly string[] => {
  const words = [...PRODUCT_WORDS, ...(email === null ? [] : wordsOfAddress(email)), ...organizations]
  const known = new Set(words.map(word => word.toLowerCase()).filter(word => word.length >= MIN_WORD))
  // The longest first, so that what is left of a password does not depend on the order in which they were named.
  return [...known].sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
}

const codePoints = (text: string): number => Array.from(text).length

/** Letters and digits that are left when all words are taken out: nobody has to guess the words. */
const leftBeside = (words: readonly string[], password: string): number => {
  const rest = words.reduce((text, word) => text.replaceAll(word, ' '), password.toLowerCase())
  return codePoints(rest.replaceAll(/[\s\p{P}\p{S}]/gu, ''))
}

/** With words of the context in it, a password has to hold as many other letters and digits, so `ada.lovelace.2026` is none. */
const MIN_BESIDE_WORDS = 8

const isContext = (password: string, words: readonly string[]): boolean => {
  const folded = password.toLowerCase()
  return words.some(word => folded.includes(word)) && leftBeside(words, password) < MIN_BESIDE_WORDS
}

/** What is wrong with a password, if anything; `words` as `contextWords` makes them. */
export const passwordFault = (password: string, words: readonly string[]): PasswordFault | undefined => {
  // Bounds in UTF-16 units first: counting code points of something endless takes as long.
  if (password.length > PASSWORD_LENGTH.max * 2) return 'too_long'
  if (password.includes('\u0000') || !password.isWellFormed()) return 'invalid_text'
  const length = codePoints(password)
  if (length < PASSWORD_LENGTH.min) return 'too_short'
  if (length > PASSWORD_LENGTH.max) return 'too_long'
  if (COMMON_PASSWORDS.has(password.toLowerCase())) return 'common_password'
  return isContext(password, words) ? 'contains_context' : undefined
}
