import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto'
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
export const scramVerifier = async (password: string, salt: Buffer = randomBytes(SALT_BYTES)): Promise<string> => {
  if (!/^[\x21-\x7e]+$/.test(password))
    throw new RangeError('Cannot make a SCRAM verifier: the password is not printable ASCII')
  const salted = await promisify(pbkdf2)(password, salt, ITERATIONS, KEY_BYTES, 'sha256')
  const key = (name: string): Buffer => createHmac('sha256', salted).update(name).digest()
  const storedKey = createHash('sha256').update(key('Client Key')).digest()
  const parts = [`${ITERATIONS}:${salt.toString('base64')}`, storedKey.toString('base64')]
  return `SCRAM-SHA-256$${parts.join('$')}:${key('Server Key').toString('base64')}`
}
