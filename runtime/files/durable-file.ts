/** Files that survive a power cut: written under a temporary name, synced, renamed, folder synced. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** Who may read a file: its mode, and where given its owner (needs root). */
export interface FileAccess {
  readonly mode: number
  readonly uid?: number
  readonly gid?: number
}

/** The mark of a name that is not meant to last; a leftover with it may be removed by whoever finds it. */
const TEMPORARY = '.new-'

/** A name beside `path` for something that will be renamed to it. */
export const temporaryName = (path: string): string =>
  `${path}${TEMPORARY}${process.pid}-${randomBytes(4).toString('hex')}`

/** Makes the names in a folder last: a rename or a new file counts only after this. */
export const syncFolder = async (folder: string): Promise<void> => {
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}

/** Replaces a file in one step: a reader, or we after a crash, see the old text or the new one and never a part. */
export const writeFileDurably = async (path: string, text: string, access: FileAccess): Promise<void> => {
  const temporary = temporaryName(path)
  try {
    const file = await open(temporary, 'wx', access.mode)
    try {
      await file.chmod(access.mode)
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    if (access.uid !== undefined || access.gid !== undefined)
      await chown(temporary, access.uid ?? process.getuid?.() ?? 0, access.gid ?? process.getgid?.() ?? 0)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await syncFolder(dirname(path))
}

/** Writes back everything of the filesystem that holds `path` (syncfs), which beats syncing a thousand files one by one. */
export const syncFilesystem = async (path: string): Promise<void> => {
  const args = process.platform === 'linux' ? ['-f', path] : []
  await promisify(execFile)('sync', args, { timeout: 120_000 })
}

/** Removes what a crash left under temporary names of `path`. Only for whoever is the single writer of it. */
export const removeTemporaries = (path: string): Promise<void> => removeLeftovers(dirname(path), basename(path))

/** Removes what a crash left under temporary names in a folder, of names that begin so. Only for its single writer. */
export const removeLeftovers = async (folder: string, beginning = ''): Promise<void> => {
  for (const name of await readdir(folder))
    if (name.startsWith(beginning) && name.includes(TEMPORARY))
      await rm(join(folder, name), { recursive: true, force: true })
}
