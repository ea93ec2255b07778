import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { assertSocketFits } from './settings.ts'

/** A port with as many digits as any. */
const LONGEST_PORT = 65_535

/**
 * Where sockets of a home go: into `own` below it where their paths fit (with `below`, the longest name of a folder that is
 * put into it), else into a short folder below /tmp that is always the same one for that home.
 */
export const socketFolderOf = (home: string, own: string, below = ''): string => {
  try {
    assertSocketFits(join(own, below), LONGEST_PORT)
    return own
  } catch {
    return join('/tmp', `svc-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`)
  }
}
