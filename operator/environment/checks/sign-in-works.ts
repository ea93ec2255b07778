import type { Check } from './check.ts'

/** Failed sign-ins in a row that a ready environment survives: one says little, the path to it may have been at fault. */
const UNREACHABLE_LIMIT = 3
const REFUSED_LIMIT = 2

/**
 * A client's sign-in succeeds. Passwords that Postgres cannot know yet are applied without asking; later they are applied
 * when they are refused, since a tenant may change its own.
 */
export const signInWorks: Check = ({ environment, signIn, credentials, recollection }) => {
  const unknown = environment.status?.everReady !== true || credentials === 'next'
  if (unknown && !recollection.credentialsApplied)
    return {
      reason: 'ApplyingCredentials',
      message: 'Setting the passwords',
      repair: { kind: 'apply-credentials' },
      outage: false,
    }
  switch (signIn?.result) {
    case 'ok':
      return undefined
    case 'refused':
      return {
        about: 'CredentialsReady',
        reason: 'SignInRefused',
        message: 'Postgres refuses the stored password',
        repair: { kind: 'apply-credentials' },
        outage: recollection.failedSignIns >= REFUSED_LIMIT,
      }
    case 'unreachable':
      return {
        about: 'DatabaseReachable',
        reason: 'SignInFailed',
        message: 'Postgres runs but a client does not reach it',
        outage: recollection.failedSignIns >= UNREACHABLE_LIMIT,
      }
    case undefined:
      // Not asked for: the last proof is fresh enough. Never so before `ready`.
      return recollection.provenAtMs === undefined
        ? { reason: 'Unproven', message: 'Waiting for a sign-in', outage: false }
        : undefined
  }
}
