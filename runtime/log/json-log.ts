/** The log of a process: pino, one JSON object a line, with nothing in it that could hold a secret by accident. */
import { pino } from 'pino'
import type { Log } from './log.ts'
import { scrub } from './scrub.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const MAX_CAUSES = 5

/**
 * An error as a log shows it: who threw it, why, and where from. Not its other fields, as pino would: a driver's error
 * carries the row that it failed on.
 */
const errorFields = (error: unknown, depth = 0): unknown => {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {}
  const cause = error.cause === undefined || depth >= MAX_CAUSES ? {} : { cause: errorFields(error.cause, depth + 1) }
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause }
}

/** Fields that are never written, should somebody pass them after all. */
const NEVER = ['authorization', 'password', 'token', 'secret', 'connection_uri', 'connectionString', 'cookie']

/** A log that gives each finished and scrubbed line to `destination`. Errors go into the field `err`. */
export const jsonLog = (destination: { write(line: string): void }, level: LogLevel = 'info'): Log =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { err: error => errorFields(error) },
      redact: { paths: [...NEVER, ...NEVER.map(name => `*.${name}`)], censor: '[redacted]' },
    },
    { write: line => destination.write(scrub(line)) },
  )
