import { mkdtempSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
/** Enough for some dozen small databases at once. */
const ROOM_BYTES = 6 * 2 ** 30

const hasRoom = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize > ROOM_BYTES
  } catch {
    return false
  }
}

/** A new temporary folder: in memory where there is plenty, since test runs share a disk; else in the system's place. */
export const newTemporaryFolder = (): string => mkdtempSync(join(hasRoom() ? MEMORY : tmpdir(), 'svc-test-'))
