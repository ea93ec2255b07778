/** `make up`: the single box in a terminal, its log in a file; with DETACH=1 behind it, returning when all is ready. */
import { closeSync, writeSync } from 'node:fs'
import { boxConfig } from './config/config.ts'
import { processEnvironment } from './config/env.ts'
import { DETACHED_ARGUMENT, SAY_FD, startDetached } from './detached.ts'
import { lineProgress } from './progress.ts'
import { runBox } from './run-box.ts'
import { runCommand } from './run-command.ts'

/** Prints until the terminal or the pipe is gone, then says nothing: a closed window must not end the databases' keeper. */
const printer = (fd: number): { print: (line: string) => void; close: () => void } => {
  let open = true
  const close = (): void => {
    if (open && fd > 2) closeSync(fd)
    open = fd <= 2
  }
  const print = (line: string): void => {
    if (!open) return
    try {
      writeSync(fd, `${line}\n`)
    } catch {
      open = false
    }
  }
  return { print, close }
}

const detached = process.argv[2] === DETACHED_ARGUMENT
const { print, close } = printer(detached ? SAY_FD : 1)

await runCommand(
  async () => {
    const environment = processEnvironment()
    const config = boxConfig(environment)
    if (config.detach && !detached) return startDetached(config)
    await runBox({
      config,
      environment,
      progress: lineProgress(print),
      logFile: true,
      showSecrets: true,
      print,
      onReady: close,
      stopHint: detached ? '"make down"' : 'Ctrl-C, or "make down" elsewhere',
    })
  },
  line => {
    if (detached) print(line)
    console.error(line) // the log's, when we are behind
  },
)
