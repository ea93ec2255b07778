/** The API server of a cluster whose processes run beside us: ended without a word, and started again as it was. */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const DEADLINE_MS = 30_000

/** How to start a process that is there once more. */
interface Recipe {
  readonly argv: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly folder: string
  readonly output: string
}

/** Where its pid stands; undefined where nobody allows us to end it. */
export const apiServerPidFile = (): string | undefined => process.env['SERVICE_TEST_API_SERVER_PID_FILE'] || undefined

export class ApiServerProcess {
  readonly #pidFile: string
  #recipe: Recipe | undefined

  constructor(pidFile: string) {
    this.#pidFile = pidFile
  }

  /** Kills it; what it kept in memory is gone. @throws Error when it does not end */
  async kill(): Promise<void> {
    const pid = Number(readFileSync(this.#pidFile, 'utf8'))
    const recipe = recipeOf(pid)
    if (!recipe.argv[0]?.endsWith('kube-apiserver')) throw new Error(`Process ${pid} is no API server`)
    this.#recipe = recipe
    process.kill(pid, 'SIGKILL')
    const until = Date.now() + DEADLINE_MS
    while (existsSync(`/proc/${pid}/exe`)) {
      if (Date.now() > until) throw new Error(`Process ${pid} did not end`)
      await sleep(20)
    }
  }

  /** Starts it with the same words, if it was killed; whoever ends the cluster finds its pid where it was. */
  start(): void {
    const recipe = this.#recipe
    if (recipe === undefined) return
    this.#recipe = undefined
    const output = openSync(recipe.output, 'a')
    const [program = '', ...args] = recipe.argv
    const child = spawn(program, args, {
      cwd: recipe.folder,
      env: recipe.environment,
      detached: true,
      stdio: ['ignore', output, output],
    })
    closeSync(output)
    child.unref()
    writeFileSync(this.#pidFile, `${child.pid}\n`)
  }
}

const recipeOf = (pid: number): Recipe => {
  const words = (file: string): string[] => readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0').slice(0, -1)
  return {
    argv: words('cmdline'),
    environment: Object.fromEntries(
      words('environ').map(pair => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
    ),
    folder: readlinkSync(`/proc/${pid}/cwd`),
    output: readlinkSync(`/proc/${pid}/fd/1`),
  }
}
