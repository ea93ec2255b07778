import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { parseMasterKey, parseMasterKeys } from '../runtime/config/master-keys.ts'
import { BoxError } from './box-error.ts'
import { readSecret, writeSecret } from './write-secret.ts'

const VARIABLE = 'SERVICE_KMS_MASTER_KEY'
const PREVIOUS = 'SERVICE_KMS_PREVIOUS_MASTER_KEYS'

/** The keys that seal and open stored secrets. */
export interface Keyring {
  readonly current: Buffer
  /** Only open: what they sealed is sealed anew with the current one. */
  readonly previous: readonly Buffer[]
  /** Where the current one is, for people. */
  readonly source: string
  /** Whether it was made just now. */
  readonly isNew: boolean
  /** Writes a new one down. Call it once it is known that nothing was sealed with another one. */
  keep(): void
}

/**
 * The configured key, else that of the secrets folder, else a new one. Changes nothing.
 * A configured key beside another one in the folder is refused, unless that one is named as a previous one.
 * @throws ConfigError for a malformed key, BoxError when the two differ
 */
export const readKeyring = (
  secretsFolder: string,
  configured: { readonly masterKey: string | undefined; readonly previousMasterKeys: string },
): Keyring => {
  const path = join(secretsFolder, 'master.key')
  const previous = parseMasterKeys(PREVIOUS, configured.previousMasterKeys)
  const text = readSecret(path)
  const kept = text === undefined ? undefined : parseMasterKey(path, text)
  const given = configured.masterKey === undefined ? undefined : parseMasterKey(VARIABLE, configured.masterKey)
  if (given !== undefined) {
    if (kept !== undefined && ![given, ...previous].some(key => key.equals(kept)))
      throw new BoxError(
        `${VARIABLE} differs from ${path}: unset it, name the one in the file in ${PREVIOUS}, or delete the file if nothing is sealed with it any more`,
      )
    return { current: given, previous, source: VARIABLE, isNew: false, keep: () => undefined }
  }
  if (kept !== undefined) return { current: kept, previous, source: path, isNew: false, keep: () => undefined }
  const made = randomBytes(32)
  const keep = (): void => writeSecret(path, `${made.toString('base64')}\n`)
  return { current: made, previous, source: path, isNew: true, keep }
}
