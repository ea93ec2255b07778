/** Plays a node as the API server sees it: its object and its heartbeats. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Lease, V1Node } from '@kubernetes/client-node'
import type { KubernetesObject, KubernetesObjects, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { microTime } from '../../runtime/kubernetes/micro-time.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'

export const NODE: ObjectType<V1Node> = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', clusterScoped: true }
const LEASE: ObjectType<V1Lease> = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases' }
const LEASES = 'kube-node-lease'
const HEARTBEAT_MS = 5000
/** Keeps the real scheduler from binding to the node: then every pod is the faker's, at its pace. */
const TAINT = { key: 'svc.internal/faked', effect: 'NoSchedule' }

export class NodeFaker {
  readonly #objects: KubernetesObjects
  readonly #name: string
  #isThere = true

  constructor(objects: KubernetesObjects, name: string) {
    this.#objects = objects
    this.#name = name
  }

  /** Whether it does anything. */
  get isThere(): boolean {
    return this.#isThere
  }

  /** Makes the node; what it answers with ends with the signal. */
  async start(signal: AbortSignal): Promise<{ readonly beating: Promise<void> }> {
    const metadata = { name: this.#name, labels: { 'kubernetes.io/hostname': this.#name } }
    await this.#create(NODE, { metadata, spec: { taints: [TAINT] } })
    await this.#report('True')
    return { beating: this.#beat(signal) }
  }

  /** Falls silent. */
  async lose(): Promise<void> {
    this.#isThere = false
    await this.#report('Unknown')
  }

  async bringBack(): Promise<void> {
    this.#isThere = true
    await this.#report('True')
  }

  async #report(ready: 'True' | 'Unknown'): Promise<void> {
    const now = new Date().toISOString()
    const condition = { type: 'Ready', status: ready, reason: 'Faked', lastHeartbeatTime: now, lastTransitionTime: now }
    const room = { cpu: '100000', memory: '1000Ti', pods: '100000', 'ephemeral-storage': '1000Ti' }
    const status = { conditions: [condition], capacity: room, allocatable: room }
    await this.#objects.merge(NODE, { namespace: '', name: this.#name }, { status }, 'status')
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const spec = (): object => ({
      holderIdentity: this.#name,
      leaseDurationSeconds: 40,
      renewTime: microTime(),
    })
    while (!signal.aborted) {
      try {
        if (this.#isThere) {
          await this.#create(LEASE, { metadata: { namespace: LEASES, name: this.#name } })
          await this.#objects.merge(LEASE, { namespace: LEASES, name: this.#name }, { spec: spec() })
        }
      } catch {
        // The API server is away: it hears the next one.
      }
      await sleep(HEARTBEAT_MS, undefined, { signal }).catch(() => undefined)
    }
  }

  async #create<O extends KubernetesObject>(type: ObjectType<O>, object: O): Promise<void> {
    try {
      await this.#objects.create(type, object)
    } catch (error) {
      if (!isStoreError(error, 'AlreadyExists')) throw error
    }
  }
}
