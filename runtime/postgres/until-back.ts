import { setTimeout as sleep } from 'node:timers/promises'

const SYSTEM_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
])
/** 57P01 admin shutdown, 57P02 crash shutdown, 57P03 cannot connect now, 08 connection. */
const SERVER_CODES = /^(57P0[123]|08...)$/
/** What the driver says without a code. */
const DRIVER_WORDS = /^(Connection terminated|Client has encountered a connection error)/

/** Whether an error says that a server is not there or went away; the same may be asked again once it is back. */
export const isServerAway = (error: unknown): boolean => {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = 'code' in cause ? String(cause.code) : ''
    if (SYSTEM_CODES.has(code) || SERVER_CODES.test(code) || DRIVER_WORDS.test(cause.message)) return true
  }
  return false
}

const PAUSE_MS = 200

/**
 * Runs work that may be repeated, again and again while its server is away and somebody brings it back.
 * @throws what the work throws of other kinds, or when the time is over
 */
export const untilBack = async <T>(work: () => Promise<T>, forMs: number): Promise<T> => {
  const giveUpAt = Date.now() + forMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isServerAway(error) || Date.now() >= giveUpAt) throw error
      await sleep(PAUSE_MS)
    }
  }
}
