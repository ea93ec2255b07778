/**
 * One control plane a folder. The lock is the kernel's, on an open file, so it dies with its holder: there is no stale
 * lock to judge, and a pid used again cannot be mistaken for the holder. Node has no flock of its own; its SQLite takes
 * POSIX record locks, which is all that is used of it: the file stays empty.
 */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { processBirth } from '../runtime/postgres/postmaster-pid.ts'

/** A lock that is held until it is released or the process ends. */
export interface FolderLock {
  release(): void
}

/** SQLITE_BUSY: somebody else holds it. */
const BUSY = 5

/** Locks stay reachable: a forgotten one would be closed, and so released, by the garbage collector. */
const held = new Set<DatabaseSync>()

const lockPath = (folder: string): string => join(folder, 'lock')
const holderPath = (folder: string): string => join(folder, 'holder.pid')

const isBusy = (error: unknown): boolean => error instanceof Error && 'errcode' in error && error.errcode === BUSY

/** The folder's lock with our pid beside it, or undefined while another process holds it. Makes the folder if need be. */
export const tryLockFolder = (folder: string): FolderLock | undefined => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Only for ourselves: whoever can read the file could lock it, and keep every start out.
  // Never opened here once it is there: closing it would drop the lock that this process may hold.
  if (!existsSync(lockPath(folder))) closeSync(openSync(lockPath(folder), 'a', 0o600))
  chmodSync(lockPath(folder), 0o600)
  const file = new DatabaseSync(lockPath(folder))
  try {
    file.exec('pragma journal_mode = memory; begin exclusive')
  } catch (error) {
    file.close()
    if (isBusy(error)) return undefined
    throw error
  }
  held.add(file)
  writeFileSync(holderPath(folder), `${process.pid} ${processBirth(process.pid) ?? ''}\n`)
  return {
    release: () => {
      rmSync(holderPath(folder), { force: true })
      held.delete(file)
      file.close()
    },
  }
}

/**
 * The pid of the process that holds the folder's lock; undefined when nobody does, or when the holder has only just
 * begun and the file still names the one before it: ask again.
 */
export const lockHolder = (folder: string): number | undefined => {
  if (!isLocked(folder)) return undefined
  try {
    const [pid, birth] = readFileSync(holderPath(folder), 'utf8').trim().split(' ')
    return processBirth(Number(pid)) === (birth ?? '') ? Number(pid) : undefined
  } catch {
    return undefined
  }
}

/** Whether some process holds the folder's lock. Never makes anything. */
export const isLocked = (folder: string): boolean => {
  let file: DatabaseSync
  try {
    file = new DatabaseSync(lockPath(folder), { readOnly: true })
  } catch {
    return false
  }
  try {
    file.exec('begin; select count(*) from sqlite_schema')
    return false
  } catch (error) {
    return isBusy(error)
  } finally {
    file.close()
  }
}
