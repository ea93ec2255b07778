import type { Check } from './check.ts'

/**
 * Passwords are made once and never overwritten; where they were lost, new ones are made, applied and proven. Where only
 * what clients find was lost or edited, it is put right.
 */
export const credentialsPresent: Check = ({ credentials, environment }) => {
  if (credentials === 'absent') {
    const repair = { kind: 'make-credentials', rotation: environment.spec.credentialsRotation } as const
    return { reason: 'CredentialsMissing', message: 'Making the passwords', repair, outage: false }
  }
  if (credentials === 'unpublished')
    return {
      reason: 'CredentialsUnpublished',
      message: 'Putting the published passwords right',
      repair: { kind: 'publish-credentials' },
      outage: false,
    }
  return undefined
}
