/** Looks at raw JSON before it is parsed: nesting and number of keys, which make later code slow or overflow its stack. */

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Whether a text nests deeper or holds more keys than allowed. Says nothing of whether it is JSON. */
export const exceedsShape = (bytes: Buffer, maxDepth: number, maxKeys: number): boolean => {
  let depth = 0
  let keys = 0
  let inString = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inString) {
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > maxDepth) return true
    } else if (byte === 0x7d || byte === 0x5d) depth--
    else if (byte === 0x3a && ++keys > maxKeys) return true
  }
  return false
}
