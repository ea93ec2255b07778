import { statfs } from 'node:fs/promises'

/** Room on the filesystem that holds an instance's data. */
export interface Disk {
  readonly freeBytes: number
  readonly totalBytes: number
  /** Below the mark at which people are warned, well before Postgres stops. */
  readonly low: boolean
}

const GIB = 2 ** 30
const MIB = 2 ** 20

/** Room below which a disk is nearly full. */
export const lowMark = (totalBytes: number): number => Math.min(totalBytes / 10, 2 * GIB)

/** Low: less than a tenth, or on big disks less than 2 GiB. Once low, a fifth more has to be free before it is not: no flapping. */
export const judgeDisk = (freeBytes: number, totalBytes: number, wasLow: boolean): Disk => {
  const mark = lowMark(totalBytes)
  return { freeBytes, totalBytes, low: freeBytes < (wasLow ? mark * 1.2 : mark) }
}

/** Too little for Postgres to write anything. */
export const isFull = ({ freeBytes, totalBytes }: Disk): boolean => freeBytes < Math.min(MIB, totalBytes / 100)

/** Reads it; undefined when the path cannot be asked. Counts what unprivileged processes may still use. */
export const readDisk = async (path: string, wasLow: boolean): Promise<Disk | undefined> => {
  try {
    const { bavail, blocks, bsize } = await statfs(path)
    return judgeDisk(bavail * bsize, blocks * bsize, wasLow)
  } catch {
    return undefined
  }
}
