import { DISK_FULL, judgeLastWords, lastWords } from '../../../runtime/postgres/last-words.ts'
import { orphansGone } from '../../../runtime/postgres/orphans.ts'
import { isFull, readDisk } from '../disk.ts'
import type { InstanceFailure } from '../host.ts'
import type { InstanceFolders } from './folders.ts'

/** What is known of a server that ended by itself. */
export interface Ended {
  readonly folders: InstanceFolders
  readonly port: number
  readonly launchedAt: Date
  /** It never answered. */
  readonly starting: boolean
}

/** Why a server ended by itself. A full disk explains everything, and also swallows the log that would say so. */
export const explainEnd = async ({ folders, port, launchedAt, starting }: Ended): Promise<InstanceFailure> => {
  // The log collector ends last, when all is written.
  await orphansGone(folders.data)
  const judged = judgeLastWords(await lastWords(folders.startLog, folders.log, launchedAt), port)
  const disk = await readDisk(folders.data, false)
  if (judged?.reason === DISK_FULL.reason || (disk !== undefined && isFull(disk))) return DISK_FULL
  if (!starting) return { reason: 'Crashed', message: 'Postgres ended by itself; it is started again' }
  return judged ?? { reason: 'StartFailed', message: 'Postgres ended while starting, without a word' }
}
