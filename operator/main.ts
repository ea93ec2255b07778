/** The operator as a process of its own, on Kubernetes: environment -> configuration -> start -> a signal or a lost lease -> stop. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { Registry } from 'prom-client'
import { listenAddress } from '../runtime/config/listen-address.ts'
import { ConfigError, parseEnv } from '../runtime/config/parse-env.ts'
import { jsonLog } from '../runtime/log/json-log.ts'
import { lineBuffer } from '../runtime/log/line-buffer.ts'
import { collectProcessMetrics, startMetricsListener } from '../runtime/metrics/metrics-listener.ts'
import { stopSignal } from '../runtime/process/stop-signal.ts'
import { operatorConfig } from './config/config.ts'
import { operatorProcessEnv, processEnvironment } from './config/env.ts'
import { parseEnvironmentsSettings } from './config/environments-settings.ts'
import { startOnCluster } from './start-on-cluster.ts'

/** Longer than everything that a stop waits for, shorter than what kubelet gives. */
const STOP_DEADLINE_MS = 20_000

/** @returns the exit code */
const run = async (): Promise<number> => {
  const environment = processEnvironment()
  const env = parseEnv(operatorProcessEnv, environment)
  const watchIdleMs = env.SERVICE_OPERATOR_WATCH_IDLE_SECONDS * 1000
  const config = { ...operatorConfig(environment, 'kubernetes'), watchIdleMs }
  const environments = parseEnvironmentsSettings('SERVICE_ENVIRONMENTS', env.SERVICE_ENVIRONMENTS)
  const metricsListen = listenAddress('SERVICE_METRICS_LISTEN', env.SERVICE_METRICS_LISTEN)
  const log = jsonLog(lineBuffer(process.stdout), env.SERVICE_LOG_LEVEL)
  const registry = new Registry()
  collectProcessMetrics(registry)
  const identity = env.SERVICE_OPERATOR_IDENTITY ?? `${hostname()}_${randomBytes(4).toString('hex')}`
  const stopped = stopSignal()
  const operator = await startOnCluster({ config, environments, identity, log, registry })
  const probes = { '/livez': operator.alive, '/readyz': operator.ready }
  const metrics = await startMetricsListener({ ...metricsListen, registry, probes })
  log.info({ url: metrics.url, identity }, 'Metrics and probes listen')
  const end = await Promise.race([stopped.then(signal => ({ signal })), operator.lost.then(why => ({ why }))])
  if ('why' in end) {
    // What this process remembers is out of date, and another one works by now.
    log.error({ why: end.why }, 'Lost the lease: ending')
    return 1
  }
  log.info({ signal: end.signal }, 'Stopping')
  setTimeout(() => process.exit(1), STOP_DEADLINE_MS).unref()
  await operator.stop()
  await metrics.stop()
  return 0
}

try {
  process.exitCode = await run()
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error)
  process.exitCode = 1
}
process.exit()
