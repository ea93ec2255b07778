/** Why a Postgres did not start or ended by itself, read from what it said. */
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** `reason` is one word for programs, `message` a sentence that names no path of this machine. */
export interface StartFailure {
  readonly reason: string
  readonly message: string
}

/** How much of the end of a log is looked at. */
const TAIL_BYTES = 16_384
const MESSAGE_LENGTH = 300

export const DISK_FULL: StartFailure = {
  reason: 'DiskFull',
  message: 'The disk that holds the data is full; it goes on by itself once there is room',
}

/**
 * Judges the last words of a server. Lines that lead to a reason win over the last FATAL or PANIC line; without either
 * the answer is undefined.
 */
export const judgeLastWords = (text: string, port: number): StartFailure | undefined => {
  if (/No space left on device|Disk quota exceeded/.test(text)) return DISK_FULL
  if (/could not bind .*Cannot assign requested address/.test(text)) return ADDRESS_UNAVAILABLE
  if (/could not bind .*Address already in use|could not create any TCP\/IP sockets/.test(text)) return portTaken(port)
  const last = text
    .split('\n')
    .map(line => /(?:FATAL|PANIC):\s+(.*)$/.exec(line)?.[1])
    .findLast(message => message !== undefined)
  return last === undefined ? undefined : { reason: 'StartFailed', message: `Postgres does not start: ${scrub(last)}` }
}

/** An address that went away, with its interface for one. */
export const ADDRESS_UNAVAILABLE: StartFailure = {
  reason: 'AddressUnavailable',
  message: 'The address that databases listen on is not one of this machine; it goes on by itself once it is',
}

export const portTaken = (port: number): StartFailure => ({
  reason: 'PortTaken',
  message: `Port ${port} is taken by another program; free it, the port of an environment never changes`,
})

/** Conditions are for everybody who may see the environment: no paths of this machine, no process ids, nothing quoted long. */
export const scrub = (message: string): string =>
  message
    .replaceAll(/"\/[^"]*\/([^"/]*)"/g, '"$1"')
    .replaceAll(/\/\S+\//g, '')
    .replaceAll(/\b(PID|process) \d+/gi, '$1')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .slice(0, MESSAGE_LENGTH)

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
