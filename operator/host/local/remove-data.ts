/** What becomes of an instance's folder when the environment is gone. Each step leaves the folder in exactly one place. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncFolder } from '../../../runtime/files/durable-file.ts'
import type { Log } from '../../../runtime/log/log.ts'
import { INTENT_FILE, type InstanceFolders, REMOVED_PREFIX } from './folders.ts'
import { readIntent } from './intent.ts'

/** Moves an instance's folder to the trash, data, logs and intent together; harmless when it is there already. */
export const moveToTrash = async (folders: InstanceFolders): Promise<void> => {
  if (!existsSync(folders.root)) return
  await mkdir(dirname(folders.trash), { recursive: true, mode: 0o711 })
  await rename(folders.root, folders.trash)
  await syncFolder(dirname(folders.trash))
  await syncFolder(dirname(folders.root))
}

/** Removes a folder: renamed away first, so that a half-removed one is never taken for an instance. */
export const removeFolder = async (root: string): Promise<void> => {
  if (!existsSync(root)) return
  const removed = join(dirname(root), `${REMOVED_PREFIX}${basename(root)}`)
  await rm(removed, { recursive: true, force: true })
  await rename(root, removed)
  await syncFolder(dirname(root))
  await rm(removed, { recursive: true, force: true })
}

/** Removes an instance's sockets; the folder may be shared with another whose uid begins alike, then it stays. */
export const removeSockets = async (folders: InstanceFolders, port: number): Promise<void> => {
  if (!existsSync(folders.sockets)) return
  for (const name of await readdir(folders.sockets))
    if (name.startsWith(`.s.PGSQL.${port}`)) await rm(join(folders.sockets, name), { force: true })
  await rmdir(folders.sockets).catch(() => undefined)
}

/** Goes on with removals that a crash cut short. */
export const finishRemovals = async (parent: string): Promise<void> => {
  for (const name of await readdir(parent))
    if (name.startsWith(REMOVED_PREFIX)) await rm(join(parent, name), { recursive: true, force: true })
}

/** Removes what the trash need not keep any longer. A folder whose time cannot be read stays, and is told. */
export const sweepTrash = async (trash: string, now: Date, log: Log): Promise<void> => {
  await finishRemovals(trash)
  for (const name of await readdir(trash)) {
    const folder = join(trash, name)
    try {
      const until = (await readIntent(join(folder, INTENT_FILE)))?.retainedUntil
      if (until === undefined) log.warn({ folder }, 'Cannot tell how long a folder in the trash is kept; it stays')
      else if (new Date(until) < now) {
        await removeFolder(folder)
        log.info({ folder }, 'Removed data whose time in the trash was over')
      }
    } catch (error) {
      log.error({ folder, err: error }, 'Cannot sweep a folder of the trash; it stays')
    }
  }
}
