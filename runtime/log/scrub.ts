/** The last look at a log line before it is written: whatever looks like a secret is taken out, wherever it came from. */

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/svc_(pat|agt|ses|setup|mgl|rst|inv|mfa|dev)_[A-Za-z0-9._~-]{8,}/g, 'svc_$1_[redacted]'],
  [/svck_[A-Za-z0-9]{8,}/g, 'svck_[redacted]'],
  [/(postgres(?:ql)?:\/\/)[^@\s"]+@/g, '$1[redacted]@'],
  [/(signature=)[0-9a-f]+/gi, '$1[redacted]'],
  [/(Bearer )[^\s"\\]+/gi, '$1[redacted]'],
]
// One quick look decides for nearly every line that there is nothing to do.
const SUSPECT = /svc_(?:pat|agt|ses|setup|mgl|rst|inv|mfa|dev)_|svck_|postgres(?:ql)?:\/\/|signature=|Bearer /i

/** The line without what looks like a token, a password in a URL, a signature or a bearer credential. */
export const scrub = (line: string): string =>
  SUSPECT.test(line) ? SECRETS.reduce((text, [pattern, instead]) => text.replace(pattern, instead), line) : line
