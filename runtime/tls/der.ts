/** The few pieces of DER (X.690) that a certificate is made of. Pure. */

const tagged = (tag: number, ...contents: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body])
}

const lengthOf = (length: number): Buffer => {
  if (length < 0x80) return Buffer.from([length])
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes])
}

export const sequence = (...items: readonly Buffer[]): Buffer => tagged(0x30, ...items)
export const set = (...items: readonly Buffer[]): Buffer => tagged(0x31, ...items)
export const octets = (content: Buffer): Buffer => tagged(0x04, content)
export const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text, 'utf8'))
export const yes = (): Buffer => Buffer.from([0x01, 0x01, 0xff])

/** A positive integer from its bytes: a leading zero where the first bit would make it negative. */
export const integer = (bytes: Buffer): Buffer =>
  tagged(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes)

/** A bit string of whole bytes, or with some unused bits at its end. */
export const bits = (content: Buffer, unused = 0): Buffer => tagged(0x03, Buffer.from([unused]), content)

/** Context-specific tags: explicit ones hold a whole element, implicit ones replace its tag. */
export const explicit = (number: number, element: Buffer): Buffer => tagged(0xa0 | number, element)
export const implicit = (number: number, content: Buffer): Buffer => tagged(0x80 | number, content)

export const objectId = (dotted: string): Buffer => {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const arcs = [first * 40 + second, ...rest].flatMap(arc => {
    const groups = [arc & 0x7f]
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) groups.unshift((left & 0x7f) | 0x80)
    return groups
  })
  return tagged(0x06, Buffer.from(arcs))
}

/** A time to the second: two-digit years until 2049, as RFC 5280 wants it. */
export const time = (at: Date): Buffer => {
  const digits = at.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)
  return at.getUTCFullYear() < 2050
    ? tagged(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : tagged(0x18, Buffer.from(`${digits}Z`))
}
