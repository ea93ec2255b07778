import type { Registry } from 'prom-client'
import type { Credentials } from '../runtime/credentials/credentials.ts'
import type { Log } from '../runtime/log/log.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import type { StoreClock } from '../runtime/store/store-clock.ts'
import type { OperatorConfig } from './config/config.ts'
import type { Events } from './environment/events.ts'
import type { Namespaces } from './environment/namespaces.ts'
import type { Host } from './host/host.ts'

/** What the operator is given: its ports, and where it tells about itself. */
export interface OperatorPorts {
  readonly store: ResourceStore
  readonly credentials: Credentials
  readonly host: Host
  readonly log: Log
  readonly registry: Registry
  /** The time by the store's clock, by which times in resources are judged; left out where that is this machine's own. */
  readonly time?: Pick<StoreClock, 'now'>
  /** Where namespaces carry labels; left out where there are none. */
  readonly namespaces?: Namespaces
  /** Where environments' stories are told; left out where nobody listens. */
  readonly events?: Events
  /** Where several operators run: settles once this one leads. Until then it only keeps its caches full. */
  readonly elected?: Promise<unknown>
}

/** Everything that the operator's loops share. */
export interface OperatorContext extends Omit<OperatorPorts, 'namespaces'> {
  readonly config: OperatorConfig
  readonly namespaces: Namespaces | undefined
  /** Epoch milliseconds, by the store's clock. */
  readonly now: () => number
  /** 0 ≤ x < 1. */
  readonly random: () => number
}

export const operatorContext = (config: OperatorConfig, ports: OperatorPorts): OperatorContext => ({
  ...ports,
  config,
  namespaces: ports.namespaces,
  now: () => ports.time?.now() ?? Date.now(),
  random: Math.random,
})
