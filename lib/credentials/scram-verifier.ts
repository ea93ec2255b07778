import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** Postgres' own default. */
const ITERATIONS = 4096
const SALT_BYTES = 16
const KEY_BYTES = 32

/**
 * What Postgres keeps of a password (RFC 5802, 7677), so that the password itself is never sent to a server that could
 * log it. For printable ASCII passwords only: others would need SASLprep.
 * @throws RangeError for any other password
 */
export const scramVerifier = async (
  password: string,
  salt: Buffer = randomBytes(SALT_BYTES),
  iterations: number = ITERATIONS,
): Promise<string> => {
  if (!/^[\x21-\x7e]+$/.test(password))
    throw new RangeError('Cannot make a SCRAM verifier: the password is not printable ASCII')
  const salted = await promisify(pbkdf2)(password, salt, iterations, KEY_BYTES, 'sha256')
  const key = (name: string): Buffer => createHmac('sha256', salted).update(name).digest()
  const storedKey = createHash('sha256').update(key('Client Key')).digest()
  const parts = [`${iterations}:${salt.toString('base64')}`, storedKey.toString('base64')]
  return `SCRAM-SHA-256$${parts.join('$')}:${key('Server Key').toString('base64')}`
}

/** Whether what Postgres keeps belongs to a password; false for anything that is no SCRAM-SHA-256 verifier. */
export const matchesVerifier = async (password: string, kept: string): Promise<boolean> => {
  const parsed = /^SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/]+={0,2})\$/.exec(kept)
  const [iterations, salt] = [Number(parsed?.[1]), parsed?.[2]]
  if (salt === undefined || iterations < 1) return false
  const ours = Buffer.from(await scramVerifier(password, Buffer.from(salt, 'base64'), iterations))
  const theirs = Buffer.from(kept)
  return ours.length === theirs.length && timingSafeEqual(ours, theirs)
}
