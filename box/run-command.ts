import { BoxError } from './box-error.ts'

/** Errors that were foreseen: their message tells people what to do. */
const FORESEEN = new Set(['BoxError', 'ConfigError', 'MigrationError', 'SealError'])

/** The system refused something, e.g. "EACCES: permission denied, mkdir '/srv/svc'": nobody needs our stack for that. */
const isSystemError = (error: Error): boolean => 'syscall' in error && 'code' in error

/** What an error says to people: one line. The stack is for errors that nobody expected. */
export const errorLine = (error: unknown): string => {
  if (!(error instanceof Error)) return `Unexpected: ${String(error)}`
  if (FORESEEN.has(error.name) || isSystemError(error)) return error.message.replaceAll(/\s*\n\s*/g, ' ')
  return `Unexpected: ${error.stack ?? error.message}`
}

/** Runs a command of the box as a program: an error becomes one line, on standard error by default, and the exit code. */
export const runCommand = async (
  command: () => Promise<void>,
  say: (line: string) => void = line => console.error(line),
): Promise<void> => {
  process.umask(0o022)
  try {
    await command()
  } catch (error) {
    say(errorLine(error))
    process.exitCode = error instanceof BoxError ? error.exitCode : 1
  }
}
