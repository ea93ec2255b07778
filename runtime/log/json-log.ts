/** The log of a process: pino, one JSON object a line, with nothing in it that could hold a secret by accident. */
import { type Logger, pino } from 'pino'
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
const NEVER = new Set(['authorization', 'password', 'token', 'secret', 'connection_uri', 'connectionString', 'cookie'])
const REDACTED = '[redacted]'

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** The fields without those of NEVER, at any depth of plain objects. Fields are few: looking beats a path matcher. */
const withoutSecrets = (fields: Record<string, unknown>): Record<string, unknown> => {
  let clean: Record<string, unknown> | undefined
  for (const name in fields) {
    const value = fields[name]
    const safe = NEVER.has(name) ? REDACTED : isPlain(value) ? withoutSecrets(value) : value
    if (safe === value) continue
    clean ??= { ...fields }
    clean[name] = safe
  }
  return clean ?? fields
}

/** pino passes what a child is bound to by its formatters, so it is looked at here. */
const overPino = (logger: Logger): Log => ({
  debug: (fields, message) => logger.debug(fields, message),
  info: (fields, message) => logger.info(fields, message),
  warn: (fields, message) => logger.warn(fields, message),
  error: (fields, message) => logger.error(fields, message),
  child: fields => overPino(logger.child(withoutSecrets({ ...fields }))),
})

/** A log that gives each finished and scrubbed line to `destination`. Errors go into the field `err`. */
export const jsonLog = (destination: { write(line: string): void }, level: LogLevel = 'info'): Log =>
  overPino(
    pino(
      {
        level,
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: label => ({ level: label }), log: withoutSecrets },
        serializers: { err: error => errorFields(error) },
      },
      { write: line => destination.write(scrub(line)) },
    ),
  )
