/**
 * Many environments on an API-only cluster whose pods, volumes, network and servers are played by a process of their own; the operator
 * is a process as in production. Needs SERVICE_BENCH_API_KUBECONFIG (or SERVICE_TEST_API_KUBECONFIG) and SERVICE_TEST_API_AUDIT_LOG of an
 * API-only cluster that nothing else uses and that is thrown away after it, for nothing is cleared away: its API server with loopback addresses for Services
 * (--service-cluster-ip-range=127.96.0.0/16) and with an audit log that is not rotated (--audit-log-maxsize=4000). By hand:
 *
 *   node bench/kubernetes-scale.ts [--environments 2000] [--quiet-seconds 60] [--no-floor]
 *
 * With SERVICE_TEST_API_SERVER_PID_FILE, what the API server itself works for each is shown too.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { OperatorProcess } from '../e2e/kubernetes/operator-process.ts'
import type { ResourceKey } from '../lib/model/resource.ts'
import { AuditLog, auditLogOf } from '../testkit/kubernetes/audit-log.ts'
import { apiCluster } from '../testkit/kubernetes/cluster.ts'
import { changesIn, creationCalls, isCounted, overBudget, readsIn } from './call-budget.ts'
import { type Figure, quantile, renderFigures, seconds } from './figure.ts'
import { bareWrites, type Writing } from './kubernetes-scale/bare-writes.ts'
import { useBenchCluster } from './kubernetes-scale/bench-cluster.ts'
import { changeEach, isOperatorsWrite } from './kubernetes-scale/changes.ts'
import { coldStart } from './kubernetes-scale/cold-start.ts'
import { Environments, makeProjects, projectsOf } from './kubernetes-scale/environments.ts'
import { startFakers } from './kubernetes-scale/fakers.ts'
import { cpuSeconds, residentMib } from './process-cost.ts'

/**
 * As the chart starts it. Of its pod's 512Mi Node gives its heap half; a process on this machine would take far more before it cleans up.
 */
const AS_IN_ITS_POD = '--max-old-space-size=256 --max-semi-space-size=4'
const CHANGES_ALONE = 40
const CHANGES_A_SECOND = 20
const CHANGING_SECONDS = 15

const { values } = parseArgs({
  options: {
    environments: { type: 'string', default: '2000' },
    'quiet-seconds': { type: 'string', default: '60' },
    'no-floor': { type: 'boolean', default: false },
  },
})
const count = Number(values.environments)
const quietMs = Number(values['quiet-seconds']) * 1_000

const figures: Figure[] = []
const figure = (name: string, value: string, aim: string): void => {
  figures.push({ name, value, aim })
  // Whoever waits for minutes sees how it goes.
  console.error(`${name}: ${value} (${aim})`)
}
const milliseconds = (value: number): string => `${Math.round(value)} ms`

/** CPU seconds of the API server so far; undefined: nobody said which process that is. */
const apiServerCpu = (): number | undefined => {
  const file = process.env['SERVICE_TEST_API_SERVER_PID_FILE']
  return file === undefined ? undefined : cpuSeconds(Number(readFileSync(file, 'utf8')))
}
/** What it worked since `before` for each of `count`. */
const apiServerWorked = (who: string, before: number | undefined, count: number): void => {
  const now = apiServerCpu()
  if (now === undefined || before === undefined) return
  figure(`CPU of the API server for each of ${who}`, milliseconds(((now - before) / count) * 1_000), 'shown')
}

const measure = async (path: string): Promise<void> => {
  const cluster = await apiCluster()
  await cluster.installKinds()
  const namespace = await cluster.namespace('scale-operator')
  const stopFakers = await startFakers()
  const environments = new Environments(cluster)
  const environment = { SERVICE_LOG_LEVEL: 'warn', NODE_OPTIONS: AS_IN_ITS_POD }
  const operator = await OperatorProcess.create({
    ...{ kubeconfig: cluster.kubeconfig, namespace, identity: 'scale', environment },
  })
  const patience = 60_000 + count * 1_000

  const create = async () => {
    const keys = await makeProjects(cluster, count)
    const log = new AuditLog(path)
    const cpuBefore = cpuSeconds(operator.pid!)
    const serverBefore = apiServerCpu()
    const start = performance.now()
    await environments.create(keys)
    await environments.untilReady(count, patience)
    const took = performance.now() - start
    const cpu = cpuSeconds(operator.pid!) - cpuBefore
    apiServerWorked('these', serverBefore, count)
    await sleep(5_000)
    // Only what is counted is kept: the log of thousands fits no memory.
    const lines = [...log.each()].filter(line => isCounted(line, namespace))
    const made = creationCalls(lines, { environments: count, projects: projectsOf(keys), namespace })
    console.error(JSON.stringify(made, undefined, 2))
    figure(`${count} environments written at full speed → all ready`, seconds(took), 'see the ratio')
    figure('CPU of the operator for each', milliseconds((cpu / count) * 1_000), 'shown')
    figure(
      'calls for each that change something / that read',
      `${changesIn(made.create).toFixed(2)} / ${readsIn(made.create).toFixed(2)}`,
      '≤ 14 / shown',
    )
    const over = overBudget(made)
    figure('against bench/call-budget.json', over.length === 0 ? 'within' : over.join('; '), 'within 5 %')
    return { keys, took }
  }

  const restQuietly = async (): Promise<void> => {
    await sleep(10_000)
    const log = new AuditLog(path)
    const memory: number[] = []
    const cpuBefore = cpuSeconds(operator.pid!)
    const start = performance.now()
    while (performance.now() - start < quietMs) {
      memory.push(residentMib(operator.pid!))
      await sleep(Math.min(5_000, quietMs / 6))
    }
    const minutes = (performance.now() - start) / 60_000
    const cpu = (cpuSeconds(operator.pid!) - cpuBefore) / (minutes * 60)
    const writes = [...log.each()].filter(isOperatorsWrite).length
    figure('quiet: writes a minute, leases left out', (writes / minutes).toFixed(1), '0')
    figure('quiet: CPU of the operator', `${(cpu * 100).toFixed(2)} % of a core`, '< 2 %')
    const half = Math.ceil(memory.length / 2)
    const lowest = [memory.slice(0, half), memory.slice(-half)].map(part => Math.min(...part).toFixed(0))
    figure('quiet: its memory, lowest of both halves', lowest.join(' → ') + ' MiB', 'flat; ≤ 350 at 10,000')
  }

  const change = async (keys: readonly ResourceKey[]): Promise<readonly ResourceKey[]> => {
    const alone = keys.slice(0, CHANGES_ALONE)
    const one = await changeEach(new AuditLog(path), environments, alone, 500)
    figure(
      'change of the deletion policy → first write of a child, one at a time, p50 / p99',
      `${milliseconds(quantile(one, 0.5))} / ${milliseconds(quantile(one, 0.99))}`,
      'p50 ≤ 15 ms',
    )
    const hurried = keys.slice(CHANGES_ALONE, CHANGES_ALONE + CHANGES_A_SECOND * CHANGING_SECONDS)
    const many = await changeEach(new AuditLog(path), environments, hurried, 1_000 / CHANGES_A_SECOND)
    figure(
      `the same at ${CHANGES_A_SECOND} changes a second, p50 / p99 of ${many.length}`,
      `${milliseconds(quantile(many, 0.5))} / ${milliseconds(quantile(many, 0.99))}`,
      'p99 ≤ 1 s',
    )
    return hurried
  }

  const compare = async (writing: Writing, does: string, model: ResourceKey, took: number, aim: string) => {
    const keys = await makeProjects(cluster, count)
    const serverBefore = apiServerCpu()
    const { ms, objects } = await bareWrites(cluster, environments, model, keys, writing)
    figure(`a bare script ${does} the same ${objects} objects for each → all pods Ready`, seconds(ms), 'floor')
    apiServerWorked('its', serverBefore, count)
    figure('ratio of the operator to it', (took / ms).toFixed(2), aim)
  }

  try {
    await operator.start()
    const { keys, took } = await create()
    await restQuietly()
    const retained = await change(keys)
    await operator.stop()
    const cold = await coldStart(operator, environments, new AuditLog(path), retained.toReversed())
    figure('cold start → every environment looked at', seconds(cold.ms), '≤ 30 s at 10,000')
    figure(
      `a change meanwhile → first write of a child, slowest of ${cold.waited.length}, one after another`,
      cold.waited.length === 0 ? 'it was over before one was made' : milliseconds(Math.max(...cold.waited)),
      '≤ 500 ms',
    )
    await environments.untilReady(count, patience)
    figure('memory of the operator after it all', `${residentMib(operator.pid!).toFixed(0)} MiB`, 'shown')
    await operator.stop()
    if (!values['no-floor']) {
      await compare('create', 'writes', keys[0]!, took, '≤ 1.3')
      await compare('apply', 'applies server-side', keys[0]!, took, 'shown')
    }
  } finally {
    await operator.stop()
    if (operator.output !== '') console.error(operator.output.slice(-3_000))
    environments.end()
    await stopFakers()
  }
}

if (import.meta.main) {
  useBenchCluster()
  const path = auditLogOf('api')
  if (path === undefined) throw new Error('Set SERVICE_TEST_API_AUDIT_LOG to the audit log of the cluster')
  await measure(path)
  console.log(renderFigures(figures))
}
