/** A single box from its start to its end as a program: first start, welcome, signals. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BoxConfig } from './config/config.ts'
import {
  FIRST_ORGANIZATION,
  firstConnectionUri,
  keepCredentials,
  makeFirstEnvironment,
  readCredentials,
} from './first-start.ts'
import { printWelcome } from './print-welcome.ts'
import type { Progress } from './progress.ts'
import { type RunningBox, type StartOptions, startBox } from './start-box.ts'

export interface RunOptions extends StartOptions {
  readonly config: BoxConfig
  readonly progress: Progress
  /** For people. */
  readonly print: (line: string) => void
  /** Whether secrets may be printed: not into a service manager's journal. */
  readonly showSecrets: boolean
  /** Told once, when everything is ready. */
  readonly onReady: () => void
  /** How to stop it, for the welcome. */
  readonly stopHint: string
}

/** After a clean stop nothing should hold the process; this is for the case that something does. */
const EXIT_DEADLINE_MS = 5000
const INTERRUPTED = 130

/** Settles at the first SIGINT, SIGTERM or SIGHUP; a second one ends the process at once and leaves databases running. */
const stopRequested = (print: (line: string) => void): Promise<void> =>
  new Promise(resolve => {
    let asked = false
    const onSignal = (): void => {
      if (asked) {
        print('Stopped at once: databases that still run are adopted by the next start, "make down" stops them')
        process.exit(INTERRUPTED)
      }
      asked = true
      resolve()
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
  })

/** The first start, or what is left of one that was cut short. Answers the token if it is new. */
const finishFirstStart = async (box: RunningBox, progress: Progress): Promise<string | undefined> => {
  const file = box.home.credentialsFile
  const kept = readCredentials(file)
  const token = kept?.token ?? (await box.makeFirstToken())
  keepCredentials(file, { base_url: box.baseUrl, organization_id: FIRST_ORGANIZATION, token })
  const done = join(box.home.root, 'first-start-done')
  if (!existsSync(done)) {
    await progress.during('Making the first environment', () =>
      makeFirstEnvironment({ base_url: box.baseUrl, organization_id: FIRST_ORGANIZATION, token }),
    )
    await writeFile(done, '')
  }
  return kept === undefined ? token : undefined
}

const welcome = async (box: RunningBox, options: RunOptions): Promise<void> => {
  const newToken = await finishFirstStart(box, options.progress)
  const credentials = readCredentials(box.home.credentialsFile)
  const connectionUri =
    credentials === undefined
      ? undefined
      : await options.progress.during('Waiting for the first environment', () => firstConnectionUri(credentials))
  printWelcome(options.print, {
    baseUrl: box.baseUrl,
    metricsUrl: box.metricsUrl,
    token: options.showSecrets ? newToken : undefined,
    credentialsFile: box.home.credentialsFile,
    connectionUri: options.showSecrets ? connectionUri : undefined,
    logFile: options.logFile ? box.home.logFile : undefined,
    stop: options.stopHint,
  })
  options.onReady()
}

/**
 * Starts, says so, and stops at a signal.
 * @throws BoxError when it cannot start
 */
export const runBox = async (options: RunOptions): Promise<void> => {
  const { config, print, progress } = options
  const stop = stopRequested(print)
  const box = await startBox(options)
  const welcomed = welcome(box, options)
  welcomed.catch(() => undefined) // once we are stopping, its calls fail, and nobody needs to hear of it
  try {
    await Promise.race([welcomed, stop])
    await stop
  } finally {
    const what = config.keepDatabases ? 'Stopping the control plane' : 'Stopping the control plane and its databases'
    await progress.during(what, () => box.stop({ keepDatabases: config.keepDatabases }))
  }
  print(config.keepDatabases ? 'Stopped; databases keep running' : 'Stopped')
  setTimeout(() => process.exit(), EXIT_DEADLINE_MS).unref()
}
