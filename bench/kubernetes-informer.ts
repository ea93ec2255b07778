/**
 * What our reflector is worth: it and the informer of @kubernetes/client-node follow the same Environments, each through a proxy that
 * counts and breaks. Needs SERVICE_BENCH_API_KUBECONFIG or SERVICE_TEST_API_KUBECONFIG. Run: node bench/kubernetes-informer.ts
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../crds/environment-type.ts'
import { KubernetesResourceStore } from '../runtime/kubernetes/kubernetes-resource-store.ts'
import { clearAtEnd } from '../testkit/at-end.ts'
import { eachOf } from '../testkit/each-of.ts'
import { apiCluster } from '../testkit/kubernetes/cluster.ts'
import { type FaultProxy, startFaultProxy } from '../testkit/kubernetes/fault-proxy.ts'
import { type Figure, quantile, renderFigures, seconds } from './figure.ts'
import { useBenchCluster } from './kubernetes-scale/bench-cluster.ts'
import { byInformer, byReflector, type Follow, type Follower } from './kubernetes-scale/followers.ts'

const ENVIRONMENTS = 200
const REPEATS = 3
const PATIENCE_MS = 30_000

interface Followed {
  readonly follower: Follower
  readonly proxy: FaultProxy
}

const measure = async (): Promise<Figure[]> => {
  const cluster = await apiCluster()
  await cluster.installKinds()
  const namespace = await cluster.namespace('informer')
  const store = new KubernetesResourceStore(cluster.api, 'bench')
  let made = 0
  const create = async (): Promise<string> => {
    const name = `org.pp.e${made++}x`
    const spec = {
      organizationId: 'org',
      projectId: 'pp',
      environmentId: name.split('.')[2]!,
      kind: 'staging' as const,
    }
    await store.create(environmentType, { namespace, name, spec })
    return name
  }
  const open = async (follow: Follow): Promise<Followed> => {
    const proxy = await startFaultProxy(cluster.kubeconfig)
    return { proxy, follower: await follow(proxy.kubeconfig, namespace) }
  }
  const openBoth = async (): Promise<readonly Followed[]> => {
    const both = [await open(byReflector), await open(byInformer)]
    await untilHas(both, ({ size }) => size === made)
    // The informer's watch has begun, too.
    await sleep(1_000)
    return both
  }
  const closeBoth = async (both: readonly Followed[]): Promise<void> => {
    for (const { follower, proxy } of both) {
      await follower.stop()
      await proxy.stop()
    }
  }
  const row = (name: string, values: readonly string[]): Figure => ({ name, value: values[0]!, aim: values[1]! })
  const told = (ms: number): string => (ms === Infinity ? `never (in ${PATIENCE_MS / 1000} s)` : seconds(ms))
  const rows: Figure[] = []
  const say = (figure: Figure): void => {
    rows.push(figure)
    console.error(`${figure.name}: ${figure.value} | ${figure.aim}`)
  }
  try {
    await create()
    const first = await openBoth()
    const calls = first.map(({ proxy }) => proxy.exchanges.length)
    await eachOf(Array.from({ length: ENVIRONMENTS }), create)
    await untilHas(first, ({ size }) => size === made)
    const asked = first.map(({ proxy }, i) => (proxy.exchanges.length - calls[i]!) / ENVIRONMENTS)
    say(
      row(
        `requests for each of ${ENVIRONMENTS} that are made`,
        asked.map(each => each.toFixed(3)),
      ),
    )
    await closeBoth(first)
    const faults: readonly (readonly [string, (proxy: FaultProxy) => Promise<void>])[] = [
      [
        'every connection is reset',
        async proxy => {
          await proxy.down()
          await proxy.up()
        },
      ],
      [
        'the same, and the next watch is refused with 500',
        async proxy => {
          proxy.inject(({ verb }) => verb === 'watch', { answer: 500 }, 1)
          await proxy.down()
          await proxy.up()
        },
      ],
    ]
    for (const [what, strike] of faults) {
      const took: number[][] = [[], []]
      let requests = [0, 0]
      for (let i = 0; i < REPEATS; i++) {
        // Fresh ones: who met one fault waits longer after the next.
        const both = await openBoth()
        const before = both.map(({ proxy }) => proxy.exchanges.length)
        await Promise.all(both.map(({ proxy }) => strike(proxy)))
        const name = await create()
        for (const [each, ms] of (await untilHas(both, follower => follower.has(name))).entries()) took[each]!.push(ms)
        requests = both.map(({ proxy }, each) => requests[each]! + proxy.exchanges.length - before[each]!)
        await closeBoth(both)
      }
      const text = `${what}: a new one is seen after, median of ${REPEATS}`
      say(
        row(
          text,
          took.map(each => told(quantile(each, 0.5))),
        ),
      )
      say(
        row(
          '… requests for that',
          requests.map(each => (each / REPEATS).toFixed(1)),
        ),
      )
    }
    return rows
  } finally {
    await clearAtEnd()
  }
}

/** How long until each has it. */
const untilHas = (both: readonly Followed[], has: (follower: Follower) => boolean): Promise<number[]> =>
  Promise.all(
    both.map(async ({ follower }) => {
      const start = performance.now()
      while (!has(follower)) {
        if (performance.now() - start > PATIENCE_MS) return Infinity
        await sleep(5)
      }
      return performance.now() - start
    }),
  )

if (import.meta.main) {
  useBenchCluster()
  const table = renderFigures(await measure())
  console.log(
    table.replace('| figure | measured | aim |', '| | our reflector | the informer of @kubernetes/client-node |'),
  )
  // Its sockets outlive it.
  process.exit(0)
}
