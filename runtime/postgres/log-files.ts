import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Postgres begins a new file at a start, each day and every 4 MB; it never removes one. */
const KEPT = 5

/** Removes all but the newest files of a server's log folder; their names sort by time. */
export const dropOldLogs = async (folder: string): Promise<void> => {
  const names = (await readdir(folder)).filter(name => name.endsWith('.log')).sort()
  for (const name of names.slice(0, -KEPT)) await rm(join(folder, name), { force: true })
}
