/** The last look at a log line before it is written: whatever looks like a secret is taken out, wherever it came from. */
import { API_KEY_START, TOKEN_WORDS } from '../../lib/credentials/token-words.ts'

const WORDS = TOKEN_WORDS.join('|')

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [new RegExp(`svc_(${WORDS})_[A-Za-z0-9._~-]{8,}`, 'g'), 'svc_$1_[redacted]'],
  [new RegExp(`${API_KEY_START}[A-Za-z0-9]{8,}`, 'g'), `${API_KEY_START}[redacted]`],
  [/(postgres(?:ql)?:\/\/)[^@\s"]+@/g, '$1[redacted]@'],
  [/(signature=)[0-9a-f]+/gi, '$1[redacted]'],
  [/(Bearer )[^\s"\\]+/gi, '$1[redacted]'],
]
// One quick look decides for nearly every line that there is nothing to do.
const SUSPECT = new RegExp(`svc_(?:${WORDS})_|${API_KEY_START}|postgres(?:ql)?://|signature=|Bearer `, 'i')

/** The line without what looks like a token, a password in a URL, a signature or a bearer credential. */
export const scrub = (line: string): string =>
  SUSPECT.test(line) ? SECRETS.reduce((text, [pattern, instead]) => text.replace(pattern, instead), line) : line
