/**
 * What a call costs the cluster, by what it does: CPU of the API server, and of etcd and the controllers together, for each of some hundred
 * calls. Needs SERVICE_BENCH_API_KUBECONFIG (or SERVICE_TEST_API_KUBECONFIG) and SERVICE_TEST_API_SERVER_PID_FILE, whose folder names the
 * processes of the cluster, each in a file. Run: node bench/kubernetes-call-costs.ts
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildClaim } from '../operator/host/kubernetes/build-claim.ts'
import { buildStatefulSet } from '../operator/host/kubernetes/build-stateful-set.ts'
import { DEFAULT_HOST_SETTINGS } from '../operator/host/kubernetes/host-settings.ts'
import { instanceNames } from '../operator/host/kubernetes/instance-names.ts'
import { claims, secrets, statefulSets } from '../operator/host/kubernetes/object-types.ts'
import { startSettings } from '../operator/host/kubernetes/server-settings.ts'
import type { KubernetesObject, ObjectKey, ObjectType } from '../runtime/kubernetes/kubernetes-object.ts'
import { clearAtEnd } from '../testkit/at-end.ts'
import { eachOf } from '../testkit/each-of.ts'
import { apiCluster } from '../testkit/kubernetes/cluster.ts'
import { useBenchCluster } from './kubernetes-scale/bench-cluster.ts'
import { cpuSeconds } from './process-cost.ts'

const CALLS = 300
/** What controllers do about a call, they do within moments. */
const SETTLED_MS = 1_500

/** CPU seconds so far of the API server, and of the cluster's other processes. */
const cpuNow = (pidFile: string): readonly [apiServer: number, others: number] => {
  const spent = (name: string): number => cpuSeconds(Number(readFileSync(join(dirname(pidFile), name), 'utf8')))
  const all = readdirSync(dirname(pidFile)).reduce((sum, name) => sum + spent(name), 0)
  const apiServer = cpuSeconds(Number(readFileSync(pidFile, 'utf8')))
  return [apiServer, all - apiServer]
}

const measure = async (pidFile: string): Promise<readonly string[]> => {
  const cluster = await apiCluster()
  const { objects } = cluster
  const namespace = await cluster.namespace('call-costs')
  const rows: string[] = []
  const cost = async (what: string, call: (i: number) => Promise<unknown>): Promise<void> => {
    await sleep(SETTLED_MS)
    const before = cpuNow(pidFile)
    const start = performance.now()
    await eachOf([...Array(CALLS).keys()], call)
    const took = performance.now() - start
    await sleep(SETTLED_MS)
    const shown = cpuNow(pidFile).map((now, i) => (((now - before[i]!) / CALLS) * 1_000).toFixed(1))
    rows.push(`| ${what} | ${shown.join(' ms | ')} ms | ${(took / CALLS).toFixed(1)} ms |`)
    console.error(rows.at(-1))
  }
  const names = (id: string) =>
    instanceNames({
      ...{ key: { namespace, name: `org.pp.${id}` }, uid: `${id.padEnd(8, '0')}-0000-4000-8000-000000000001` },
      path: { organizationId: 'org', projectId: 'pp', environmentId: id },
    })
  const spec = {
    ...{ cpu: '500m', memoryBytes: 2 ** 28, storageBytes: 2 ** 30, maxConnections: 50 },
    ...{ image: 'svc-postgres:17', kind: 'staging' as const },
  }
  /** Of nobody: whose owner is not there, the cluster would collect. */
  const free = <O extends KubernetesObject>(object: O): O => ({
    ...object,
    metadata: { ...object.metadata, ownerReferences: [] },
  })
  const statefulSet = (id: string, maxConnections = 50) => {
    const wanted = { running: false, spec: { ...spec, maxConnections } }
    return free(buildStatefulSet(names(id), wanted, startSettings(spec, names(id).name), DEFAULT_HOST_SETTINGS))
  }
  const claim = (id: string) =>
    free(
      buildClaim(names(id), {
        ...{ storageBytes: 2 ** 30, storageClass: 'none', lineage: 'template:x' },
        ...{ initialized: false, deletionPolicy: 'Delete' as const },
      }),
    )
  const secret = (id: string) => ({
    ...{ apiVersion: 'v1', kind: 'Secret', type: 'Opaque', data: { password: 'YQ==' } },
    metadata: { namespace, name: names(id).files, labels: names(id).labels },
  })
  const noted = { metadata: { annotations: { noted: 'true' } } }
  const made = async <O extends KubernetesObject>(
    type: ObjectType<O>,
    build: (id: string) => O,
    keyOf: (id: string) => ObjectKey,
  ): Promise<void> => {
    await cost(`create a ${type.kind}`, i => objects.create(type, build(`c${i}x`)))
    await cost(`apply a new ${type.kind}`, i => objects.apply(type, build(`a${i}x`)))
    await cost(`merge an annotation into a ${type.kind}`, i => objects.merge(type, keyOf(`a${i}x`), noted))
  }
  try {
    await made(secrets, secret, id => ({ namespace, name: names(id).files }))
    await cost('read a Secret', i => objects.get(secrets, { namespace, name: names(`a${i}x`).files }))
    await made(claims, claim, id => ({ namespace, name: names(id).claim }))
    await made(
      statefulSets,
      id => statefulSet(id),
      id => ({ namespace, name: names(id).name }),
    )
    await cost('apply a StatefulSet with another template', i => objects.apply(statefulSets, statefulSet(`a${i}x`, 51)))
    return rows
  } finally {
    await clearAtEnd()
  }
}

if (import.meta.main) {
  useBenchCluster()
  const pidFile = process.env['SERVICE_TEST_API_SERVER_PID_FILE']
  if (pidFile === undefined)
    throw new Error('Set SERVICE_TEST_API_SERVER_PID_FILE to the file with the API server’s pid')
  const rows = await measure(pidFile)
  console.log(
    ['| call | API server | etcd and controllers | of the clock |', '| --- | --- | --- | --- |', ...rows].join('\n'),
  )
  process.exit(0)
}
