import type { Check } from './check.ts'

/** Passwords are made once and never overwritten; where they were lost, new ones are made, applied and proven. */
export const credentialsPresent: Check = ({ credentials, environment }) =>
  credentials === 'absent'
    ? {
        reason: 'CredentialsMissing',
        message: 'Making the passwords',
        repair: { kind: 'make-credentials', rotation: environment.spec.credentialsRotation },
        outage: false,
      }
    : undefined
