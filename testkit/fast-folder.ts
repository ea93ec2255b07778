import { mkdtempSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const SHARED_MEMORY = '/dev/shm'
const NEEDED_BYTES = 4 * 2 ** 30

/** Room in memory for a box and a dozen databases; a container's /dev/shm is often tiny. */
const hasRoom = (folder: string): boolean => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= NEEDED_BYTES
  } catch {
    return false
  }
}

/**
 * A new folder where writing back costs nothing, if the machine has such a place: tests kill processes, they do not cut the
 * power, and other people's writes must not slow them down.
 */
export const fastFolder = (prefix: string): string =>
  mkdtempSync(join(hasRoom(SHARED_MEMORY) ? SHARED_MEMORY : tmpdir(), prefix))
