/**
 * The single box, composed: folder, control-plane Postgres, migrations, ports, operator, API server, in one process.
 * What was started is stopped in the reverse order, also when a later step fails.
 */
import { Registry } from 'prom-client'
import { type ApiServerConfig, apiServerConfig } from '../apiserver/config/config.ts'
import { startApiServer } from '../apiserver/start.ts'
import { operatorConfig } from '../operator/config/config.ts'
import { caCertificateFile } from '../operator/host/local/server-tls.ts'
import { startOperator } from '../operator/start.ts'
import { QUICK_RECONNECT_BACKOFF } from '../runtime/controller/backoff.ts'
import { jsonLog } from '../runtime/log/json-log.ts'
import { lineBuffer } from '../runtime/log/line-buffer.ts'
import { collectProcessMetrics, startMetricsListener } from '../runtime/metrics/metrics-listener.ts'
import { StoreClock } from '../runtime/store/store-clock.ts'
import { assertListenable } from './assert-listenable.ts'
import type { BoxConfig } from './config/config.ts'
import { type HomeFolder, openHome } from './home-folder.ts'
import { makeLocalOperatorToken } from './local-operator.ts'
import { openLocalPorts, type PortOptions, type Ports } from './local-ports.ts'
import { openLogFile } from './log-file.ts'
import { readKeyring } from './master-key.ts'
import type { Progress } from './progress.ts'
import { DATABASE_BACK_MS, postgresAccount, startControlPlane } from './start-control-plane.ts'

export interface StartOptions {
  readonly config: BoxConfig
  /** The variables of the API server and the operator. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly progress: Progress
  /** Whether the log goes into the home; else to standard output. */
  readonly logFile: boolean
  /** How ports are opened; by default those of the single box. */
  readonly openPorts?: (options: PortOptions) => Promise<Ports>
}

export interface RunningBox {
  readonly home: Omit<HomeFolder, 'release'>
  readonly baseUrl: string
  readonly metricsUrl: string
  /** With which the first administrator is made; undefined: there is one. */
  readonly setupToken: string | undefined
  /** The certificate by which clients know environments' servers, where these speak TLS. */
  readonly caCertificateFile: string | undefined
  /** A token of the user `local-operator`, who is made if need be; earlier ones of it are revoked. */
  makeFirstToken(): Promise<string>
  stop(options: { readonly keepDatabases: boolean }): Promise<void>
}

const LOG_BYTES = 16 * 2 ** 20
const LOGS_KEPT = 4
const FIRST_TOKEN = { tokenName: 'First start', replacesTokens: true }

/** What was started, and how each part is stopped again; `keepDatabases` leaves Postgres processes as they are. */
class Stages {
  readonly #undo: ((keepDatabases: boolean) => unknown)[] = []

  add(undo: (keepDatabases: boolean) => unknown): void {
    this.#undo.push(undo)
  }

  /** Stops all, the last one first, even when one of them fails. @throws the first failure */
  async undo(keepDatabases: boolean): Promise<void> {
    const failures: unknown[] = []
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) {
      try {
        await undo(keepDatabases)
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}

/** Up to the databases: what everything else stands on. */
const startGround = async (options: StartOptions, apiConfig: ApiServerConfig, stages: Stages) => {
  const { config, progress } = options
  const account = postgresAccount(config.postgres.user)
  const home = await openHome(config.home, account)
  stages.add(() => home.release())
  await assertListenable('SERVICE_LISTEN', apiConfig.listen)
  await assertListenable('SERVICE_METRICS_LISTEN', apiConfig.metricsListen)
  await assertListenable('SERVICE_POSTGRES_LISTEN', { host: config.postgres.reach.listen, port: 0 })
  const destination = options.logFile
    ? openLogFile(home.logFile, { maxBytes: LOG_BYTES, keep: LOGS_KEPT })
    : process.stdout
  const log = jsonLog(lineBuffer(destination), apiConfig.logLevel)
  const keyring = readKeyring(home.secrets, config)
  const controlPlane = await startControlPlane(home, account, keyring, log, progress)
  stages.add(keep => (keep ? controlPlane.postgres.leave() : controlPlane.postgres.stop()))
  keyring.keep()
  return { home, log, keyring, account, ...controlPlane }
}

/** Where this machine reaches a listener of all its addresses. */
const loopbackOf = (url: string): string => url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')

/** A check that fails until it is told that all is well. */
const untilTold = (what: string): { readonly check: () => Promise<void>; readonly tell: () => void } => {
  let told = false
  return {
    check: async () => {
      if (!told) throw new Error(what)
    },
    tell: () => void (told = true),
  }
}

/**
 * Starts it; everything that it answers with serves.
 * @throws errors of one line; what this start began is stopped again, what it found running runs on
 */
export const startBox = async (options: StartOptions): Promise<RunningBox> => {
  const { config, environment, progress, openPorts = openLocalPorts } = options
  const apiConfig = apiServerConfig(environment)
  const operatorSettings = operatorConfig(environment)
  const stages = new Stages()
  let adopted = false
  try {
    const ground = await startGround(options, apiConfig, stages)
    const { home, log, keyring, urls } = ground
    adopted = ground.postgres.adopted
    const registry = new Registry()
    collectProcessMetrics(registry)
    const ports = await openPorts({
      storeUrl: urls.store,
      masterKeys: keyring,
      home,
      account: ground.account,
      binaries: ground.binaries,
      postgres: config.postgres,
      log,
      registry,
    })
    stages.add(keep => ports.close({ keepDatabases: keep }))
    const { credentials, host, caCertificate, tenantAddress } = ports
    const time = new StoreClock()
    const operator = startOperator(
      { ...operatorSettings, reconnect: QUICK_RECONNECT_BACKOFF },
      {
        store: ports.store('svc-operator', time),
        time,
        credentials,
        host,
        log: log.child({ part: 'operator' }),
        registry,
      },
    )
    stages.add(() => operator.stop())
    // Before, an answer could still say how an environment was, and not how it is.
    const judged = untilTold('Not every environment was looked at yet')
    const api = await startApiServer(
      {
        ...apiConfig,
        databaseUrl: urls.serving,
        masterKey: keyring.current,
        previousMasterKeys: keyring.previous,
        rewrapAtStart: true,
        databasePatienceMs: DATABASE_BACK_MS,
        operatorNamespace: operatorSettings.namespace,
        reconnect: QUICK_RECONNECT_BACKOFF,
      },
      {
        store: ports.store('svc-apiserver'),
        credentials,
        log: log.child({ part: 'apiserver' }),
        registry,
        caCertificate,
        tenantAddress,
        readiness: { environments: judged.check },
      },
    )
    stages.add(() => api.stop())
    const metrics = await startMetricsListener({ ...apiConfig.metricsListen, registry })
    stages.add(() => metrics.stop())
    await progress.during('Looking at every environment', async () => {
      await Promise.all([operator.ready(), api.ready])
      await api.rowsAgree()
    })
    judged.tell()
    log.info({ url: api.url, metrics: metrics.url }, 'Ready')
    return {
      home,
      baseUrl: loopbackOf(api.url),
      setupToken: api.setupToken,
      metricsUrl: metrics.url,
      caCertificateFile: caCertificate === undefined ? undefined : caCertificateFile(home.dataRoot),
      makeFirstToken: async () => (await makeLocalOperatorToken(urls.serving, log, FIRST_TOKEN)).token,
      stop: ({ keepDatabases }) => stages.undo(keepDatabases),
    }
  } catch (error) {
    await stages.undo(adopted).catch(() => undefined) // the first failure is the one to tell
    throw error
  }
}
