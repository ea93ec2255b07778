/** A cluster whose pods, volumes, network and Postgres servers are played, and an operator's own namespace on it. */
import assert from 'node:assert/strict'
import { KubernetesResourceStore } from '../../runtime/kubernetes/kubernetes-resource-store.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { atEnd } from '../at-end.ts'
import { type ClaimFaker, startClaimFaker } from './claim-faker.ts'
import { apiCluster, type TestCluster } from './cluster.ts'
import { letPodsGo } from './let-pods-go.ts'
import { needsLoopbackServices } from './loopback-services.ts'
import { playAlone } from './one-player.ts'
import { PodFaker } from './pod-faker.ts'
import { ServiceFaker } from './service-faker.ts'

export interface FakedCluster {
  readonly cluster: TestCluster
  readonly store: ResourceStore
  readonly pods: PodFaker
  readonly claims: ClaimFaker
  readonly services: ServiceFaker
  /** Of the operator. */
  readonly namespace: string
  /** Fails with what went wrong in the fakers since it was last asked, if anything did. */
  assertSound(): Promise<void>
}

let running: Promise<FakedCluster> | undefined

/** The one of this test process; ended with it. Where there can be none, the tests of the hook that asks are skipped. */
export const fakedCluster = async (hook: Mocha.Context): Promise<FakedCluster> => {
  await needsLoopbackServices(hook, await apiCluster())
  return (running ??= start())
}

const start = async (): Promise<FakedCluster> => {
  const cluster = await apiCluster()
  await playAlone(cluster.objects)
  await cluster.installKinds()
  const namespace = await cluster.namespace('e2e-operator')
  const pods = await PodFaker.start({ api: await cluster.open('pod-faker') })
  const claims = startClaimFaker(await cluster.open('claim-faker'), { node: pods.node })
  const services = ServiceFaker.start(await cluster.open('service-faker'), pods)
  atEnd(async () => {
    await letPodsGo(cluster.objects)
    await services.stop()
    await claims.stop()
    await pods.stop()
  })
  const told = new Set<unknown>()
  return {
    cluster,
    store: new KubernetesResourceStore(cluster.api, 'svc-apiserver'),
    pods,
    claims,
    services,
    namespace,
    assertSound: async () => {
      const untold = [...pods.failures, ...claims.failures, ...services.failures].filter(failure => !told.has(failure))
      for (const failure of untold) told.add(failure)
      assert.deepEqual(untold, [])
      assert.deepEqual(await services.strange(), [])
    },
  }
}
