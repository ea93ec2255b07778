import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { parseMasterKey } from '../runtime/config/master-keys.ts'
import { BoxError } from './box-error.ts'
import { readSecret, writeSecret } from './write-secret.ts'

/**
 * The key that seals stored secrets: the configured one, else that of the secrets folder, made at the first start.
 * Both at once must be equal, for a second key could open nothing that the first one sealed.
 * @throws BoxError when it is malformed or when the two differ
 */
export const masterKey = (secretsFolder: string, configured: string | undefined): Buffer => {
  const path = join(secretsFolder, 'master.key')
  const kept = readSecret(path)
  const given = configured === undefined ? undefined : parseMasterKey('SERVICE_KMS_MASTER_KEY', configured)
  if (kept === undefined) {
    if (given !== undefined) return given
    const made = randomBytes(32)
    writeSecret(path, `${made.toString('base64')}\n`)
    return made
  }
  const key = parseMasterKey(path, kept)
  if (given !== undefined && !given.equals(key))
    throw new BoxError(`SERVICE_KMS_MASTER_KEY differs from ${path}, which sealed this folder's secrets: unset it`)
  return key
}
