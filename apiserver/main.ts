/** The API server as a process of its own: environment -> configuration -> ports -> start -> wait for a signal -> stop. */
import { Registry } from 'prom-client'
import { SealError } from '../lib/credentials/seal.ts'
import { parseMasterKey, parseMasterKeys } from '../runtime/config/master-keys.ts'
import { ConfigError, parseEnv } from '../runtime/config/parse-env.ts'
import { jsonLog } from '../runtime/log/json-log.ts'
import { lineBuffer } from '../runtime/log/line-buffer.ts'
import { collectProcessMetrics, startMetricsListener } from '../runtime/metrics/metrics-listener.ts'
import { MigrationError, migrate, readMigrations } from '../runtime/postgres/migrate.ts'
import { stopSignal } from '../runtime/process/stop-signal.ts'
import { apiServerConfig } from './config/config.ts'
import { processEnvironment, standaloneEnv } from './config/env.ts'
import { openStore, storePlace } from './open-store.ts'
import { startApiServer } from './start.ts'
import { MIGRATIONS_FOLDER } from './store/migrations.ts'

/** Serves until a signal; lets go of everything in the reverse order, also when a later step fails. */
const run = async (): Promise<void> => {
  const environment = processEnvironment()
  const config = apiServerConfig(environment, 'oidc')
  const env = parseEnv(standaloneEnv, environment)
  const place = storePlace(env)
  const masterKey = parseMasterKey('SERVICE_KMS_MASTER_KEY', env.SERVICE_KMS_MASTER_KEY)
  const previous = parseMasterKeys('SERVICE_KMS_PREVIOUS_MASTER_KEYS', env.SERVICE_KMS_PREVIOUS_MASTER_KEYS)
  const lines = lineBuffer(process.stdout)
  const log = jsonLog(lines, config.logLevel)
  const announce = (msg: string): void =>
    lines.write(`${JSON.stringify({ level: 'warn', time: new Date().toISOString(), msg })}\n`)
  const registry = new Registry()
  collectProcessMetrics(registry)
  if (env.SERVICE_DATABASE_OWNER_URL !== undefined)
    await migrate(env.SERVICE_DATABASE_OWNER_URL, await readMigrations(MIGRATIONS_FOLDER), log)
  await using opened = new AsyncDisposableStack()
  const masterKeys = { current: masterKey, previous }
  const { close, reconnect, ...ports } = await openStore(place, { masterKeys, log, registry })
  opened.defer(close)
  const metrics = await startMetricsListener({ ...config.metricsListen, registry })
  opened.defer(() => metrics.stop())
  log.info({ url: metrics.url }, 'Metrics listen')
  const server = await startApiServer(
    {
      ...config,
      databaseUrl: env.SERVICE_DATABASE_URL,
      masterKey,
      previousMasterKeys: previous,
      ...(reconnect && { reconnect }),
    },
    { ...ports, log, registry, announce },
  )
  opened.defer(() => server.stop())
  const signal = await stopSignal()
  log.info({ signal }, 'Stopping')
}

/** The whole story for people, where there is one. */
const oneLine = (error: unknown): string | undefined => {
  if (
    error instanceof ConfigError ||
    error instanceof SealError ||
    (error instanceof MigrationError && error.reason !== 'failed')
  )
    return error.message
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'EADDRINUSE') return undefined
  return `Cannot listen: ${error.message}; stop what listens there, or set SERVICE_LISTEN or SERVICE_METRICS_LISTEN`
}

try {
  await run()
} catch (error) {
  console.error(oneLine(error) ?? error)
  process.exitCode = 1
}
