import { BoxError } from './box-error.ts'

/** What an error says to people: one line. The stack is for errors that nobody expected. */
const errorLine = (error: unknown): string =>
  error instanceof BoxError
    ? error.message
    : `Unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`

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
