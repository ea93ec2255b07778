/** What the calls of single sign-on share. */
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { SsoProvider } from '../../auth/oidc/sso-provider.ts'
import { type SsoConfigurationRow, ssoSecretPlace } from '../../store/sso-configurations.ts'
import type { CommandDependencies } from '../dependencies.ts'
import type { LoginDependencies, LoginSettings } from '../login/dependencies.ts'

/** What changing an organization's provider needs beside the rest. */
export interface SsoDependencies extends CommandDependencies {
  readonly login: Pick<LoginDependencies, 'providers' | 'sealer' | 'settings'>
}

const CALLBACK = '/auth/sso/callback'

/** Where providers send browsers back to: never what a caller says. Undefined: no console is configured. */
export const redirectUriOf = ({ links }: LoginSettings): string | undefined => links.console && links.console + CALLBACK

/** Also for an organization that is not there: whether it is, is nobody's business. */
export const ssoNotFound = (): DomainError =>
  new DomainError('sso_not_found', 'There is no such organization, or it has no single sign-on')

/** A provider that may be asked: with its secret opened. */
export const openProvider = (
  { sealer }: Pick<LoginDependencies, 'sealer'>,
  { revision, issuer, clientId, sealedSecret }: SsoConfigurationRow,
): SsoProvider => ({ revision, issuer, clientId, clientSecret: sealer.open(ssoSecretPlace(revision), sealedSecret) })
