/** API servers as processes of their own, as in production: one database, one resource store, as many processes as are wanted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from './at-end.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase, dumpOf } from './control-plane-database.ts'
import { storeDatabase } from './embedded-store.ts'
import { freePorts } from './free-port.ts'
import { programEnvironment } from './program-environment.ts'
import { assertNoSecrets, noteSecretSettings } from './secrets-of-tests.ts'

/** Of its output that are kept. */
const MOST_LINES = 4000
const MAIN = new URL('../apiserver/main.ts', import.meta.url).pathname

/** What a process writes for whoever starts it: a setup token. */
export const isAnnouncement = (line: string): boolean =>
  /^\{"level":"warn","time":"[^"]+","msg":"[^"]*svc_setup_/.test(line)

/** What processes share. */
export interface ProcessPlace {
  readonly plane: ControlPlaneDatabase
  /** The settings of every process here. */
  readonly environment: Readonly<Record<string, string>>
}

/** One process. Its address stays when it is started again. */
export interface ApiProcess {
  readonly url: string
  /** Of the process that runs now. */
  readonly pid: number
  /** What it and those before it wrote lately. */
  output(): string
  /** Ends it as a power cut does, and waits until it is gone. */
  kill(): Promise<void>
  /** Starts it again after it ended; resolves once it is ready. */
  start(): Promise<void>
  /** Asks it to end, and waits. */
  stop(): Promise<void>
}

/** So that no test meets a limit that it does not ask for, and none waits for connections that clients keep. */
export const UNLIMITED = {
  SERVICE_RATE_LIMIT_PER_MINUTE: '0',
  SERVICE_RATE_LIMIT_MUTATIONS_PER_MINUTE: '0',
  SERVICE_RATE_LIMIT_CONNECTION_PER_MINUTE: '0',
  SERVICE_RATE_LIMIT_VERIFY_PER_MINUTE: '0',
  SERVICE_RATE_LIMIT_ANONYMOUS_PER_MINUTE: '0',
  SERVICE_STOP_GRACE_SECONDS: '0',
} as const

/** So that all that can be logged is looked at for secrets. */
export const EVERY_LEVEL = { SERVICE_LOG_LEVEL: 'debug' } as const

/** Whether somebody listens. A start is waited for in small steps, and a request that nobody takes costs much more than this. */
const isListening = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    const tell = (is: boolean) => (): void => {
      socket.destroy()
      resolve(is)
    }
    socket.setTimeout(1_000, tell(false))
    socket.once('connect', tell(true)).once('error', tell(false))
  })

/** Fresh databases, on which no limit is met that is not asked for. */
export const processPlace = async (environment: Readonly<Record<string, string>> = {}): Promise<ProcessPlace> => {
  const plane = await controlPlaneDatabase()
  // Registered before its processes are: it comes after their ends.
  atEnd(() => judgeRows(plane))
  return {
    plane,
    environment: {
      SERVICE_DATABASE_URL: plane.url('svc_api'),
      SERVICE_STORE_URL: await storeDatabase(),
      SERVICE_AUTH_MODE: 'builtin',
      SERVICE_KMS_MASTER_KEY: randomBytes(32).toString('base64'),
      ...UNLIMITED,
      ...EVERY_LEVEL,
      ...environment,
    },
  }
}

/** @throws AssertionError when a secret stands in the metrics of a server */
export const judgeMetrics = async (metricsUrl: string): Promise<void> => {
  const answer = await fetch(metricsUrl, { signal: AbortSignal.timeout(10_000) })
  assertNoSecrets({ 'the metrics': (await answer.text()).split('\n') })
}

/** @throws AssertionError when a secret stands in a row */
export const judgeRows = async (plane: ControlPlaneDatabase): Promise<void> =>
  assertNoSecrets({ 'the database': await dumpOf(plane) })

/** Starts a process; resolves once it is ready. */
export const startApiProcess = async (
  place: ProcessPlace,
  environment: Readonly<Record<string, string>> = {},
  /** Gets each line that it writes. */
  onLine: (line: string) => void = () => undefined,
): Promise<ApiProcess> => {
  const port = await freePorts(2)
  const url = `http://127.0.0.1:${port}`
  const metricsUrl = `http://127.0.0.1:${port + 1}/metrics`
  const settings = {
    ...programEnvironment(),
    ...place.environment,
    SERVICE_LISTEN: `127.0.0.1:${port}`,
    SERVICE_METRICS_LISTEN: `127.0.0.1:${port + 1}`,
    ...environment,
  }
  noteSecretSettings({ ...place.environment, ...environment })
  let child: ChildProcess
  let gone: Promise<unknown>
  const written: string[] = []
  /** What was written and not yet looked at for secrets. */
  const unjudged: string[] = []
  const judge = (): void => assertNoSecrets({ 'what the process wrote': unjudged.splice(0) })
  const isReady = (): Promise<boolean> =>
    fetch(`${url}/readyz`).then(
      async answer => {
        await answer.arrayBuffer()
        return answer.ok
      },
      () => false,
    )
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const isThere = child.exitCode === null && child.signalCode === null
    if (isThere && signal === 'SIGTERM') await judgeMetrics(metricsUrl)
    child.kill(signal)
    await gone
    judge()
  }
  const start = async (): Promise<void> => {
    child = spawn(process.execPath, [MAIN], { env: settings, stdio: ['ignore', 'pipe', 'pipe'] })
    gone = once(child, 'exit')
    for (const stream of [child.stdout, child.stderr])
      if (stream !== null)
        createInterface(stream).on('line', line => {
          onLine(line)
          written.push(line)
          if (!isAnnouncement(line)) unjudged.push(line)
          if (written.length > MOST_LINES) written.splice(0, MOST_LINES / 2)
        })
    while (!((await isListening(port)) && (await isReady()))) {
      if (child.exitCode !== null) throw new Error(`The API server did not start:\n${written.join('\n')}`)
      await sleep(20)
    }
  }
  // A test that fails stops nothing, and would wait for it for ever.
  atEnd(() => end('SIGKILL'))
  await start()
  return {
    url,
    get pid() {
      return child.pid ?? 0
    },
    output: () => written.join('\n'),
    kill: () => end('SIGKILL'),
    start,
    stop: () => end('SIGTERM'),
  }
}
