/** The API server as a process of its own: environment -> configuration -> ports -> start -> wait for a signal -> stop. */
import { Registry } from 'prom-client'
import { parseMasterKey, parseMasterKeys } from '../runtime/config/master-keys.ts'
import { ConfigError, parseEnv } from '../runtime/config/parse-env.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { SealedCredentials } from '../runtime/embedded/sealed-credentials.ts'
import { jsonLog } from '../runtime/log/json-log.ts'
import { lineBuffer } from '../runtime/log/line-buffer.ts'
import type { Log } from '../runtime/log/log.ts'
import { collectProcessMetrics, startMetricsListener } from '../runtime/metrics/metrics-listener.ts'
import { migrate, readMigrations } from '../runtime/postgres/migrate.ts'
import { apiServerConfig } from './config/config.ts'
import { processEnvironment, standaloneEnv } from './config/env.ts'
import { startApiServer } from './start.ts'
import { MIGRATIONS_FOLDER } from './store/migrations.ts'

const CLIENT_NAME = 'svc-apiserver'

const signalled = (): Promise<NodeJS.Signals> =>
  new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve)
  })

const run = async (): Promise<Log> => {
  const environment = processEnvironment()
  const config = apiServerConfig(environment)
  const env = parseEnv(standaloneEnv, environment)
  const masterKey = parseMasterKey('SERVICE_KMS_MASTER_KEY', env.SERVICE_KMS_MASTER_KEY)
  const previous = parseMasterKeys('SERVICE_KMS_PREVIOUS_MASTER_KEYS', env.SERVICE_KMS_PREVIOUS_MASTER_KEYS)
  const log = jsonLog(lineBuffer(process.stdout), config.logLevel)
  const registry = new Registry()
  collectProcessMetrics(registry)
  if (env.SERVICE_DATABASE_OWNER_URL !== undefined)
    await migrate(env.SERVICE_DATABASE_OWNER_URL, await readMigrations(MIGRATIONS_FOLDER))
  const store = new EmbeddedResourceStore({ url: env.SERVICE_STORE_URL, clientName: CLIENT_NAME, log, registry })
  const credentials = await SealedCredentials.open({
    url: env.SERVICE_STORE_URL,
    clientName: CLIENT_NAME,
    masterKeys: { current: masterKey, previous },
  })
  const server = await startApiServer(
    { ...config, databaseUrl: env.SERVICE_DATABASE_URL, masterKey },
    { store, credentials, log, registry },
  )
  const metrics = await startMetricsListener({ ...config.metricsListen, registry })
  log.info({ url: metrics.url }, 'Metrics listen')
  const signal = await signalled()
  log.info({ signal }, 'Stopping')
  await server.stop()
  await Promise.all([metrics.stop(), store.close(), credentials.close()])
  return log
}

try {
  const log = await run()
  log.info({}, 'Stopped')
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
