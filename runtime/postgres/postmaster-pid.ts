/** Finds out whether a Postgres serves a data folder, and that a process id is really its postmaster's. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** What a postmaster writes into `postmaster.pid` while it runs. */
export interface PostmasterFile {
  readonly pid: number
  /** When it started, seconds since 1970. */
  readonly startedAtEpochSeconds: number
  readonly port: number
  readonly socketFolder: string
  /** starting, ready, stopping or standby; undefined before it said. */
  readonly status: string | undefined
}

/** Reads the lines of a postmaster.pid; undefined when it is not (yet) one. */
export const parsePostmasterFile = (text: string): PostmasterFile | undefined => {
  const lines = text.split('\n')
  const number = (line: number): number =>
    /^-?\d+$/.test(lines[line]?.trim() ?? '') ? Number(lines[line]) : Number.NaN
  const pid = Math.abs(number(0)) // negative: a single-user backend
  if (!Number.isSafeInteger(pid) || pid < 1) return undefined
  const status = lines[7]?.trim()
  return {
    pid,
    startedAtEpochSeconds: number(2),
    port: number(3),
    socketFolder: lines[4] ?? '',
    status: status === undefined || status === '' ? undefined : status,
  }
}

/** A data folder's postmaster.pid, or undefined when there is none that can be read. */
export const readPostmasterFile = (dataFolder: string): PostmasterFile | undefined => {
  try {
    return parsePostmasterFile(readFileSync(join(dataFolder, 'postmaster.pid'), 'utf8'))
  } catch {
    return undefined
  }
}

/**
 * What tells a process from a later one with the same id: its start in clock ticks since boot on Linux. Undefined when no
 * such process lives; a zombie does not live. Elsewhere than on Linux an empty string stands for every living process.
 */
export const processBirth = (pid: number): string | undefined => {
  if (process.platform !== 'linux') return exists(pid) ? '' : undefined
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The command name in parentheses may hold anything; fields are counted from behind it: state, …, the 20th is the start.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Whether a process works in a folder: every process of a Postgres server does, in its data folder, even after a rename. */
const worksIn = (pid: number | string, folder: { dev: number; ino: number }): boolean => {
  try {
    const cwd = statSync(`/proc/${pid}/cwd`)
    return cwd.dev === folder.dev && cwd.ino === folder.ino
  } catch {
    return false
  }
}

/**
 * The living postmaster of a data folder, proven: a postmaster.pid may be a leftover whose number now belongs to any
 * other program. On Linux the process must work in that very folder; elsewhere a living process has to do.
 */
export const findPostmaster = (dataFolder: string): PostmasterFile | undefined => {
  const file = readPostmasterFile(dataFolder)
  if (file === undefined || processBirth(file.pid) === undefined) return undefined
  if (process.platform !== 'linux') return file
  const folder = statSync(dataFolder, { throwIfNoEntry: false })
  return folder !== undefined && worksIn(file.pid, folder) ? file : undefined
}

/**
 * Every process that works in a data folder or was launched for it, backends that outlived a killed postmaster too; ids ascending. Linux only:
 * elsewhere just the postmaster.
 */
export const processesOf = (dataFolder: string): number[] => {
  if (process.platform !== 'linux') {
    const postmaster = findPostmaster(dataFolder)
    return postmaster === undefined ? [] : [postmaster.pid]
  }
  const folder = statSync(dataFolder, { throwIfNoEntry: false })
  if (folder === undefined) return []
  return readdirSync('/proc')
    .filter(
      name =>
        /^\d+$/.test(name) &&
        isPostgres(name) &&
        (worksIn(name, folder) || isLaunchedFor(name, dataFolder)) &&
        processBirth(Number(name)) !== undefined,
    )
    .map(Number)
    .sort((a, b) => a - b)
}

/**
 * Whether a process was told to serve a data folder: one that was launched a moment ago has not gone there yet. Without this its
 * lock file, written meanwhile, would be taken for a leftover.
 */
const isLaunchedFor = (pid: string, dataFolder: string): boolean => {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return words[1] === '-D' && words[2] === dataFolder
  } catch {
    return false
  }
}

/** A shell that somebody opened in the folder is no server. */
const isPostgres = (pid: string): boolean => {
  try {
    return /\/postgres$/.test(readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ''))
  } catch {
    return false
  }
}
