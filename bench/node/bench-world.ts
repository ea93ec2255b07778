/** A fresh installation on a cluster with a node, with what is needed to measure it. */
import type { OperationBody } from '../../e2e/api-client.ts'
import { type Installation, installationOn } from '../../e2e/kubernetes/installation.ts'
import { Tenant } from '../../e2e/tenant.ts'
import { atEnd } from '../../testkit/at-end.ts'
import { nodeCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { timed } from '../lifecycle.ts'
import { Sightings } from './sightings.ts'

/** A client that waits as people's programs do; each look costs the machine that is measured. */
const POLL_MS = 50

export interface BenchWorld {
  readonly cluster: TestCluster
  readonly installation: Installation
  readonly tenant: Tenant
  readonly sightings: Sightings
  /** Where bare ones are made. */
  readonly bareNamespace: string
  /** The image of both. */
  readonly image: string
}

/** @throws Error when somebody uses the cluster: what is measured ends with every environment deleted */
const refuseUsed = async ({ kubectl }: Installation): Promise<void> => {
  const found = [
    await kubectl.run(['get', 'namespaces', '--selector', 'svc.internal/project', '--output', 'name']),
    await kubectl.run(['get', 'environments.svc.internal', '--all-namespaces', '--output', 'name']),
  ].flatMap(({ stdout }) => stdout.split('\n').filter(line => line !== ''))
  if (found.length > 0)
    throw new Error(`This deletes every environment of its cluster, and there is ${found.slice(0, 3).join(', ')}`)
}

/** Installs; everything goes again at the end. */
export const openBenchWorld = async (): Promise<BenchWorld> => {
  const cluster = await nodeCluster()
  const installation = installationOn(cluster, 'bench/node/values.yaml')
  await refuseUsed(installation)
  atEnd(() => installation.uninstall())
  await installation.upgrade()
  const { world } = await installation.enter()
  atEnd(() => world.close())
  const sightings = new Sightings(await cluster.open('svc-bench'))
  atEnd(() => sightings.stop())
  return {
    ...{ cluster, installation, sightings },
    tenant: await Tenant.create(world),
    bareNamespace: await cluster.namespace('bench'),
    image: 'svc-postgres:17',
  }
}

/** Milliseconds from sending a call to its operation's success. */
export const operationMs = ({ tenant }: BenchWorld, send: () => Promise<OperationBody>): Promise<number> =>
  timed(tenant, send, POLL_MS)

/** Asks for an environment. */
export const askFor = async ({ tenant }: BenchWorld, id: string): Promise<OperationBody> => {
  const answer = await tenant.requestEnvironment(id, { deletion_policy: 'delete' })
  if (answer.status !== 202) throw new Error(`Create answered ${answer.status}: ${answer.text}`)
  return answer.body
}

/** Signs in as a client does that knows nothing yet. */
export const signIn = ({ tenant }: BenchWorld, id: string): Promise<unknown> =>
  tenant.sql(id, session => session.rows('select 1'))
