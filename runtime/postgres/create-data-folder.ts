import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { removeTemporaries, syncFilesystem, syncFolder, temporaryName } from '../files/durable-file.ts'

/** Whether a data folder was ever initialized. Nothing may initialize it again. */
export const isInitialized = (dataFolder: string): boolean => existsSync(join(dataFolder, 'PG_VERSION'))

/**
 * Makes a data folder as a copy of a template: copied to a name beside it, written back to disk, renamed. So the folder is
 * absent or whole, whenever the machine stops. A folder that holds PG_VERSION is left as it is; the caller is its only writer.
 * Owner and modes are the template's.
 * @returns whether it made one
 * @throws Error with the program's own words, e.g. "No space left on device"
 */
export const createDataFolder = async (templateFolder: string, dataFolder: string): Promise<boolean> => {
  if (isInitialized(dataFolder)) return false
  await removeTemporaries(dataFolder)
  const copy = temporaryName(dataFolder)
  try {
    await copyFolder(templateFolder, copy)
    await syncFilesystem(dirname(copy))
    await rename(copy, dataFolder)
  } catch (error) {
    await rm(copy, { recursive: true, force: true })
    throw error
  }
  await syncFolder(dirname(dataFolder))
  return true
}

/**
 * Copies a folder with owners, modes and times. `cp` in one process beats a thousand calls through libuv's threads, and on
 * filesystems that can share blocks it shares them.
 */
const copyFolder = async (from: string, to: string): Promise<void> => {
  const args = process.platform === 'linux' ? ['-a', '--reflink=auto'] : ['-a']
  try {
    await promisify(execFile)('cp', [...args, from, to], { timeout: 300_000, env: { PATH: COPY_PATH, LC_ALL: 'C' } })
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim().split('\n')[0]
    throw new Error(`Cannot copy the template folder: ${said ?? (error as Error).message}`, { cause: error })
  }
}

const COPY_PATH = '/usr/local/bin:/usr/bin:/bin'
