/** Time-based one-time passwords (RFC 6238) as apps make them: SHA-1, 30 seconds, six digits. */
import { createHmac, randomBytes } from 'node:crypto'

const DIGITS = 6
const STEP_SECONDS = 30
const SECRET_BYTES = 20
/** Steps to either side that are taken: clocks differ, and people type slowly. */
const WINDOW = 1
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 without padding, as apps and people take it. */
export const base32 = (bytes: Uint8Array): string => {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{1,5}/g) ?? []).map(five => BASE32.charAt(parseInt(five.padEnd(5, '0'), 2))).join('')
}

const fromBase32 = (text: string): Buffer => {
  let bits = ''
  for (const letter of text) bits += BASE32.indexOf(letter).toString(2).padStart(5, '0')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map(byte => parseInt(byte, 2)))
}

/** Draws a secret, in base32. */
export const newTotpSecret = (): string => base32(randomBytes(SECRET_BYTES))

/** The step of a moment, given in seconds since 1970. */
export const totpStep = (seconds: number): number => Math.floor(seconds / STEP_SECONDS)

/** The code of a step. */
export const totpCode = (secret: string, step: number, digits = DIGITS): string => {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', fromBase32(secret)).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 15
  return String((mac.readUInt32BE(offset) & 0x7fff_ffff) % 10 ** digits).padStart(digits, '0')
}

/** The latest step near a moment whose code this is. Whoever takes it sees to it that no step is taken twice. */
export const matchTotp = (secret: string, code: string, seconds: number): number | undefined => {
  if (!/^[0-9]{6}$/.test(code)) return undefined
  const now = totpStep(seconds)
  for (let step = now + WINDOW; step >= now - WINDOW; step--) if (totpCode(secret, step) === code) return step
  return undefined
}

/** What an app reads from a QR code. */
export const otpauthUri = (issuer: string, account: string, secret: string): string => {
  const [name, label] = [encodeURIComponent(issuer), encodeURIComponent(account)]
  return `otpauth://totp/${name}:${label}?secret=${secret}&issuer=${name}&algorithm=SHA1&digits=${DIGITS}&period=${STEP_SECONDS}`
}
