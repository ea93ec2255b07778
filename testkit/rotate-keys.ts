/** Changing the master key as whoever runs the service does: the settings of its servers, and the command. */

import type { ControlPlaneDatabase } from './control-plane-database.ts'
import { ended } from './kubernetes/kubectl.ts'

const PROGRAM = new URL('../apiserver/rotate-keys.ts', import.meta.url).pathname

/** What a server, and the command, is told of keys. */
export const keySettings = (current: Buffer, previous: readonly Buffer[] = []) => ({
  SERVICE_KMS_MASTER_KEY: current.toString('base64'),
  SERVICE_KMS_PREVIOUS_MASTER_KEYS: previous.map(key => key.toString('base64')).join(','),
})

/** The command, with nothing else in its environment. */
export const rotateKeys = (plane: ControlPlaneDatabase, current: Buffer, previous: readonly Buffer[]) => {
  const variables = { SERVICE_DATABASE_URL: plane.url('svc_api'), ...keySettings(current, previous) }
  return ended('env', ['-i', ...Object.entries(variables).map(each => each.join('=')), process.execPath, PROGRAM])
}
