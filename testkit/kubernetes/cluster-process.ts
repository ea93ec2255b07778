/** A process of a cluster whose processes run beside us: ended without a word and started again as it was, or stopped for a while. */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const DEADLINE_MS = 30_000

/** How to start a process that is there once more. */
interface Recipe {
  readonly argv: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly folder: string
  readonly output: string
}

/** The programs of a cluster without a node. */
export type ClusterProcessName = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler'

export class ClusterProcess {
  readonly #name: string
  readonly #pidFile: string
  #recipe: Recipe | undefined

  private constructor(name: string, pidFile: string) {
    this.#name = name
    this.#pidFile = pidFile
  }

  /**
   * By the name of its program, of the API-only cluster: SERVICE_TEST_API_SERVER_PID_FILE says where the API server's pid stands, and those
   * of the others stand beside it. Undefined where nobody allows us to end it.
   */
  static named(name: ClusterProcessName): ClusterProcess | undefined {
    const apiServer = process.env['SERVICE_TEST_API_SERVER_PID_FILE']
    if (apiServer === undefined || apiServer === '') return undefined
    const pidFile = name === 'kube-apiserver' ? apiServer : join(dirname(apiServer), name)
    return existsSync(pidFile) ? new ClusterProcess(name, pidFile) : undefined
  }

  /** What follows a flag among its words. @throws Error when nothing does */
  wordAfter(flag: string): string {
    const { argv } = this.#recipe ?? recipeOf(this.#pid)
    const word = argv[argv.indexOf(flag) + 1]
    if (!argv.includes(flag) || word === undefined) throw new Error(`${this.#name} runs without ${flag}`)
    return word
  }

  /** Kills it; what it kept in memory is gone. @throws Error when it does not end */
  async kill(): Promise<void> {
    const pid = this.#pid
    this.#recipe = recipeOf(pid)
    process.kill(pid, 'SIGKILL')
    const until = Date.now() + DEADLINE_MS
    // Not its program alone: while one of its threads is there, so are its ports.
    while (existsSync(`/proc/${pid}`)) {
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

  /** It does nothing for so long, and says nothing: as one whose disk takes that time for a flush. */
  async freeze(ms: number): Promise<void> {
    const pid = this.#pid
    process.kill(pid, 'SIGSTOP')
    try {
      await sleep(ms)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  }

  /** @throws Error when the process of that pid is another one by now */
  get #pid(): number {
    const pid = Number(readFileSync(this.#pidFile, 'utf8'))
    if (!recipeOf(pid).argv[0]?.endsWith(this.#name)) throw new Error(`Process ${pid} is no ${this.#name}`)
    return pid
  }
}

/** Waits until the API server answers what somebody asks. @throws what it answered last, when it does not in a minute */
export const untilAnswered = async (ask: () => Promise<unknown>): Promise<void> => {
  for (const until = Date.now() + 2 * DEADLINE_MS; ; )
    try {
      await ask()
      return
    } catch (error) {
      if (Date.now() > until) throw error
      await sleep(50)
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
