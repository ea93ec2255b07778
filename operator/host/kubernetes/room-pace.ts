/** How soon to look at a disk again: long before it can be nearly full, and seldom where there is room. Pure. */
import { type Disk, lowMark } from '../disk.ts'

export const LOOK_AT_MOST_MS = 3_600_000
const LOOK_AT_LEAST_MS = 60_000
/** How long a disk that nobody has seen filling takes to fill altogether. */
const FILLS_IN_MS = 8 * 3_600_000

/** `before`: as it was `sinceMs` ago. undefined: not known. */
export const lookAgainMs = (disk: Disk | undefined, before: Disk | undefined, sinceMs: number): number => {
  if (disk === undefined) return LOOK_AT_MOST_MS
  if (disk.low) return LOOK_AT_LEAST_MS
  const seen = before === undefined || !(sinceMs > 0) ? 0 : (before.freeBytes - disk.freeBytes) / sinceMs
  const bytesPerMs = Math.max(seen, disk.totalBytes / FILLS_IN_MS)
  const leftMs = (disk.freeBytes - lowMark(disk.totalBytes)) / bytesPerMs
  return Math.min(Math.max(leftMs / 4, LOOK_AT_LEAST_MS), LOOK_AT_MOST_MS)
}
