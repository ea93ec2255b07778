import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

/** Takes finished log lines, as pino gives them. */
export interface LogFile {
  write(line: string): void
}

/**
 * A log file that never grows beyond its share: at `maxBytes` it becomes `<path>.1`, that one `<path>.2`, and so on;
 * the oldest is dropped. A disk that is full loses lines, never the process.
 */
export const openLogFile = (path: string, options: { readonly maxBytes: number; readonly keep: number }): LogFile => {
  const open = (): number => openSync(path, 'a', 0o600)
  const rotate = (): void => {
    closeSync(file)
    for (let number = options.keep - 1; number >= 0; number--) {
      try {
        renameSync(number === 0 ? path : `${path}.${number}`, `${path}.${number + 1}`)
      } catch {
        // Not there yet.
      }
    }
    file = open()
    size = 0
  }
  let file = open()
  let size = fstatSync(file).size
  return {
    write: line => {
      try {
        size += writeSync(file, line)
        if (size >= options.maxBytes) rotate()
      } catch {
        // Nowhere to complain to.
      }
    },
  }
}
