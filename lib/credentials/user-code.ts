/**
 * User codes of the device flow: eight of twenty consonants (34 bits), so that no code is a word, or reads like another.
 * Shown as XXXX-XXXX, typed in any case and grouping.
 */
import { createHmac, randomInt } from 'node:crypto'

const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const LENGTH = 8
const FORM = new RegExp(`^[${ALPHABET}]{${LENGTH}}$`)

/** Draws one, without its hyphen. */
export const newUserCode = (): string =>
  Array.from({ length: LENGTH }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('')

/** As people are shown it. */
export const shownUserCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`

/** What somebody typed, as it was drawn; undefined: it can be none. Only ASCII has other cases here: ſ is no S. */
export const typedUserCode = (text: string): string | undefined => {
  const code = text.replaceAll(/[ \t-]/g, '').replaceAll(/[a-z]/g, letter => letter.toUpperCase())
  return FORM.test(code) ? code : undefined
}

/** What is kept of one: keyed, since a plain digest of 34 bits is read back in a minute. */
export const userCodeDigest = (key: Buffer, code: string): Buffer =>
  createHmac('sha256', key).update(`device\n${code}`).digest()
