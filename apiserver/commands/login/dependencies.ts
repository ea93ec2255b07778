/** What the built-in login works with. */
import type { Sealer } from '../../../lib/credentials/seal.ts'
import type { Log } from '../../../runtime/log/log.ts'
import type { SessionSettings } from '../../auth/authenticate/session.ts'
import type { SsoProviders } from '../../auth/oidc/sso-providers.ts'
import type { PasswordHasher } from '../../auth/passwords/password-hasher.ts'
import type { RecentTries } from '../../auth/passwords/recent-tries.ts'
import type { Links } from '../../links.ts'
import type { Mailbox } from '../../mail/post-letter.ts'
import type { Database } from '../../store/database.ts'
import type { LockoutSettings } from '../../store/login/sign-in-failures.ts'

export interface LoginSettings {
  readonly sessions: SessionSettings
  readonly lockout: LockoutSettings
  readonly links: Links
  /** Makes digests of codes. */
  readonly codeKey: Buffer
  /** A new address gets an account when it is proved. */
  readonly publicSignup: boolean
}

export interface LoginDependencies {
  /** Seals secrets of second factors and of identity providers' clients. */
  readonly sealer: Sealer
  readonly database: Database
  readonly log: Log
  readonly hasher: PasswordHasher
  readonly tries: RecentTries
  readonly settings: LoginSettings
  /** Asks the identity providers of organizations. */
  readonly providers: SsoProviders
  /** undefined: mail is not configured. */
  readonly mailbox: Mailbox | undefined
}
