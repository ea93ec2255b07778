/**
 * A process that contends for a lease and, whenever it leads, writes its identity into a ConfigMap, as fast as it goes.
 * Says what happens to it on standard output, one JSON value a line. `block <ms>` on its standard input blocks its main loop.
 */
import { createInterface } from 'node:readline'
import { Registry } from 'prom-client'
import { kubernetesObjects } from '../../runtime/kubernetes/kubernetes-objects.ts'
import { type LeaseElector, startLeaseElector } from '../../runtime/kubernetes/lease-elector.ts'
import { monotonicMs } from '../../runtime/kubernetes/lease-term.ts'
import { openKubernetesApi } from '../../runtime/kubernetes/open-kubernetes-api.ts'
import { silentLog } from '../../runtime/log/log.ts'

const [kubeconfig = '', namespace = '', identity = '', timings = '{}'] = process.argv.slice(2)

const say = (what: string, more: object = {}): void => {
  process.stdout.write(`${JSON.stringify({ what, at: monotonicMs(), ...more })}\n`)
}

// eslint-disable-next-line prefer-const -- the API is asked before the elector is there
let elector: LeaseElector | undefined
const mayWrite = (): boolean => elector?.isLeading() === true
const { api, access } = await openKubernetesApi({ name: identity, version: 'test', kubeconfig, mayWrite })
const objects = kubernetesObjects(api, identity)
elector = await startLeaseElector({
  access,
  namespace,
  name: 'contended',
  identity,
  userAgent: `${identity}-lease/test`,
  log: silentLog,
  registry: new Registry(),
  ...(JSON.parse(timings) as object),
})
let stopping = false

const write = async (): Promise<void> => {
  for (let count = 1; !stopping; count++) {
    try {
      elector.mustLead()
      const began = monotonicMs()
      await objects.merge(
        { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
        { namespace, name: 'written' },
        { data: { by: identity, count: String(count) } },
      )
      say('wrote', { began })
    } catch {
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
}

createInterface({ input: process.stdin }).on('line', line => {
  const until = monotonicMs() + Number(line.replace('block ', ''))
  say('blocking')
  while (monotonicMs() < until);
  say('blocked', { leading: mayWrite() })
})
process.once('SIGTERM', () => {
  stopping = true
  void elector.stop().then(() => {
    say('stopped')
    process.exit(0)
  })
})
void elector.elected.then(() => say('elected'))
void elector.lost.then(why => {
  say('lost', { why })
  process.exit(1)
})
say('started')
await write()
