/** Why Postgres did not start or ended by itself, read from what it said. */
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ConditionError, type InstanceFailure } from '../host.ts'

/** How much of the end of a log is looked at. */
const TAIL_BYTES = 16_384
const MESSAGE_LENGTH = 300

export const DISK_FULL: InstanceFailure = {
  reason: 'DiskFull',
  message: 'The disk that holds the data is full; it goes on by itself once there is room',
}

/**
 * Judges the last words of a server. Lines that lead to a reason win over the last FATAL or PANIC line; without either
 * the answer is undefined.
 */
export const judgeLastWords = (text: string, port: number): InstanceFailure | undefined => {
  if (/No space left on device|Disk quota exceeded/.test(text)) return DISK_FULL
  if (/could not bind .*Address already in use|could not create any TCP\/IP sockets/.test(text)) return portTaken(port)
  const last = text
    .split('\n')
    .map(line => /(?:FATAL|PANIC):\s+(.*)$/.exec(line)?.[1])
    .findLast(message => message !== undefined)
  return last === undefined ? undefined : { reason: 'StartFailed', message: `Postgres does not start: ${scrub(last)}` }
}

export const portTaken = (port: number): InstanceFailure => ({
  reason: 'PortTaken',
  message: `Port ${port} is taken by another program; free it, the port of an environment never changes`,
})

/** Conditions are for everybody who may see the environment: no paths of this machine, no process ids, nothing quoted long. */
const scrub = (message: string): string =>
  message
    .replaceAll(/"\/[^"]*\/([^"/]*)"/g, '"$1"')
    .replaceAll(/\/\S+\//g, '')
    .replaceAll(/\b(PID|process) \d+/gi, '$1')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .slice(0, MESSAGE_LENGTH)

/** What an error on the way to a start means. */
export const failureOf = (error: unknown): InstanceFailure => {
  if (error instanceof ConditionError) return { reason: error.reason, message: error.message }
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return DISK_FULL
  if (code === 'EACCES' || code === 'EROFS' || code === 'EIO')
    return { reason: 'StorageUnavailable', message: `The folder of the data cannot be used (${code})` }
  return judgeLastWords(message, 0) ?? { reason: 'StartFailed', message: `Postgres does not start: ${scrub(message)}` }
}

const STORAGE_REASONS = new Set(['DiskFull', 'StorageUnavailable', 'DataMissing'])

/** The failure as the error that sets its condition. */
export const conditionError = ({ reason, message }: InstanceFailure, cause?: unknown): ConditionError =>
  new ConditionError(STORAGE_REASONS.has(reason) ? 'StorageReady' : 'DatabaseReachable', reason, message, cause)

/** The end of a file, from `since` on by the time stamps that our lines begin with; empty when it cannot be read. */
const tail = async (file: string): Promise<string> => {
  try {
    const opened = await open(file, 'r')
    try {
      const { size } = await opened.stat()
      const length = Math.min(size, TAIL_BYTES)
      const { buffer, bytesRead } = await opened.read(Buffer.alloc(length), 0, length, size - length)
      return buffer.toString('utf8', 0, bytesRead)
    } finally {
      await opened.close()
    }
  } catch {
    return ''
  }
}

/** Lines begin with a UTC time; those from before a moment are somebody else's. */
const saidSince = (text: string, since: Date): string =>
  text
    .split('\n')
    .filter(line => {
      const stamp = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{3}) UTC /.exec(line)
      return stamp !== null && new Date(`${stamp[1] ?? ''}T${stamp[2] ?? ''}Z`) >= since
    })
    .join('\n')

/** What a server said since it was launched: to its start log, then to the files of its log collector. */
export const lastWords = async (startLog: string, logFolder: string, since: Date): Promise<string> => {
  const files = (await readdir(logFolder).catch(() => [] as string[])).sort().slice(-2)
  const texts = [await tail(startLog)]
  for (const file of files) texts.push(saidSince(await tail(join(logFolder, file)), since))
  return texts.join('\n')
}
