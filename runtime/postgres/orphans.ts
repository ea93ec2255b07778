import { setTimeout as sleep } from 'node:timers/promises'
import { processesOf } from './postmaster-pid.ts'

/** Backends of a postmaster that was killed end within moments, once they notice; its log collector ends last. */
const ORPHANS_MS = 5000

/** Waits until no process works in a data folder, or as long as that may take. */
export const orphansGone = async (dataFolder: string): Promise<void> => {
  for (const deadline = Date.now() + ORPHANS_MS; processesOf(dataFolder).length > 0 && Date.now() < deadline; )
    await sleep(20)
}
