import { randomBytes } from 'node:crypto'
import type { CredentialSet } from '../../runtime/credentials/credentials.ts'

/** 192 bits in letters, digits, - and _: whole in a URI, a shell word and a double click. */
const password = (): string => randomBytes(24).toString('base64url')

/** Fresh passwords for both roles of an environment. */
export const newCredentials = (): CredentialSet => ({
  app: { username: 'app', password: password() },
  ops: { username: 'svc_ops', password: password() },
})
