import { isRotationDue } from '../rotation.ts'
import type { Check } from './check.ts'

/**
 * The passwords are of after the rotation that was asked for. New ones are kept first, then set, then proven by a sign-in,
 * and only then take the place of those in force: whoever holds the new ones never meets a server that refuses them, and a
 * crash anywhere goes on from what is kept.
 */
export const credentialsRotated: Check = ({ environment, credentials, keptRotation, signIn }) => {
  const reason = 'RotatingCredentials'
  if (credentials === 'next')
    return signIn?.result === 'ok'
      ? { reason, message: 'Publishing the new passwords', repair: { kind: 'promote-credentials' }, outage: false }
      : { reason, message: 'Waiting for a sign-in with the new passwords', outage: false }
  const { credentialsRotation: rotation } = environment.spec
  if (!isRotationDue(environment) || rotation === undefined || keptRotation === rotation) return undefined
  const repair = { kind: 'prepare-rotation', rotation } as const
  return { reason, message: 'Making new passwords', repair, outage: false }
}
