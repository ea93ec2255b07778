/** Gathers log lines and writes many at a time: a system call a line costs more than the line. */

const FLUSH_MS = 100
const MAX_CHARACTERS = 64 * 1024

export interface LineBuffer {
  write(line: string): void
  /** Writes what was gathered. */
  flush(): void
}

/** Lines arrive at `destination` within a tenth of a second, those of errors at once; flushed when the process exits. */
export const lineBuffer = (destination: { write(text: string): unknown }): LineBuffer => {
  let gathered = ''
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (gathered === '') return
    const text = gathered
    gathered = ''
    destination.write(text)
  }
  process.once('exit', flush)
  return {
    flush,
    write: line => {
      gathered += line
      if (gathered.length > MAX_CHARACTERS || line.startsWith('{"level":"error"')) flush()
      else timer ??= setTimeout(flush, FLUSH_MS).unref()
    },
  }
}
