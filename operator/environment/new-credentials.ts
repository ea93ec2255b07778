import { randomBytes } from 'node:crypto'
import type { CredentialSet } from '../../runtime/credentials/credentials.ts'

/** 192 bits in letters, digits, - and _: whole in a URI, a shell word and a double click. */
const password = (): string => randomBytes(24).toString('base64url')

/** Fresh passwords for both roles of an environment, and the rotation that they serve, if any. */
export const newCredentials = (rotation?: string): CredentialSet => ({
  ...(rotation === undefined ? {} : { rotation }),
  app: { username: 'app', password: password() },
  ops: { username: 'svc_ops', password: password() },
})
