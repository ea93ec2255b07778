/** A single box from its start to its end as a program: first start, welcome, signals. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BoxConfig } from './config/config.ts'
import {
  type Credentials,
  FIRST_ORGANIZATION,
  firstConnectionUri,
  isAccepted,
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

interface FirstToken {
  readonly credentials: Credentials
  /** Made by this start. */
  readonly isNew: boolean
  readonly revoked: boolean
}

/** The first start, or what is left of one that was cut short; and a new first token where the file is gone. */
const finishFirstStart = async (box: RunningBox, progress: Progress): Promise<FirstToken> => {
  const file = box.home.credentialsFile
  const done = join(box.home.root, 'first-start-done')
  const kept = readCredentials(file)
  const known = kept === undefined ? undefined : { ...kept, base_url: box.baseUrl }
  const accepted = known !== undefined && (await isAccepted(known))
  // A token that was revoked after the first start stays so: nobody gets back behind a person's back what they took away.
  const keep = known !== undefined && (accepted || existsSync(done))
  const token = keep ? known.token : await box.makeFirstToken()
  const credentials = { base_url: box.baseUrl, organization_id: FIRST_ORGANIZATION, token }
  keepCredentials(file, credentials)
  if (!existsSync(done)) {
    await progress.during('Making the first environment', () => makeFirstEnvironment(credentials))
    await writeFile(done, '')
  }
  return { credentials, isNew: !keep, revoked: keep && !accepted }
}

const welcome = async (box: RunningBox, options: RunOptions): Promise<void> => {
  const { credentials, isNew, revoked } = await finishFirstStart(box, options.progress)
  const connectionUri = await options.progress.during('Waiting for the first environment', () =>
    firstConnectionUri(credentials),
  )
  printWelcome(options.print, {
    baseUrl: box.baseUrl,
    metricsUrl: box.metricsUrl,
    token: options.showSecrets && isNew ? credentials.token : undefined,
    setupToken: box.setupToken,
    credentialsFile: box.home.credentialsFile,
    revoked,
    connectionUri: options.showSecrets ? connectionUri : undefined,
    caCertificateFile: box.caCertificateFile,
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
