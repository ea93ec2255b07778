/** One contender for a coordination.k8s.io Lease: takes it when it is free, renews it, gives it back. */
import { isStoreError } from '../store/store-error.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import { microTime } from './micro-time.ts'
import { collectionPath, objectPath } from './object-path.ts'

export interface LeaseContenderOptions {
  readonly api: KubernetesApi
  readonly namespace: string
  readonly name: string
  /** Unique to the process: whoever has it is the holder. */
  readonly identity: string
  readonly durationSeconds: number
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** What an attempt found. */
export interface Standing {
  readonly leading: boolean
  readonly holder: string
  /** For a leader: the moment from which its term counts. */
  readonly asOf: number
  /** How often the lease changed hands: the same number twice means that nobody else led in between. */
  readonly transitions: number
}

interface Lease {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly resourceVersion?: string }
  readonly spec: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly acquireTime?: string
    readonly renewTime?: string
    readonly leaseTransitions?: number
  }
}

const leases = { apiVersion: 'coordination.k8s.io/v1', plural: 'leases' }

export class LeaseContender {
  readonly #options: LeaseContenderOptions
  /** The lease as we wrote it last, while we hold it. */
  #held: Lease | undefined
  /** What others' lease says, and since when it has been saying so by our own clock: theirs is not to be trusted. */
  #seen: { readonly text: string; readonly at: number } | undefined

  constructor(options: LeaseContenderOptions) {
    this.#options = options
  }

  /**
   * Renews the lease, or takes it when nobody holds it or its holder has let its term pass.
   * @throws StoreError when that could not be found out; a leader still leads to the end of its term
   */
  async contend(): Promise<Standing> {
    const { identity, now } = this.#options
    // From before the request: others count from when they see it, which is later.
    const asOf = now()
    try {
      const current = this.#held ?? (await this.#read())
      const holder = current?.spec.holderIdentity ?? ''
      if (current !== undefined && holder !== '' && holder !== identity && !this.#hasPassed(current))
        return { leading: false, holder, asOf, transitions: transitionsOf(current) }
      this.#held = await this.#take(current)
      return { leading: true, holder: identity, asOf, transitions: transitionsOf(this.#held) }
    } catch (error) {
      if (!isStoreError(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
      // Somebody was faster, perhaps a request of ours whose answer was lost.
      const lost = this.#held !== undefined
      this.#held = undefined
      return lost ? this.contend() : { leading: false, holder: '', asOf, transitions: 0 }
    }
  }

  /** Gives the lease back, so that the next one need not wait for the end of its term. Harmless when it is not ours. */
  async release(): Promise<void> {
    const held = this.#held
    if (held === undefined) return
    this.#held = undefined
    try {
      await this.#put({ ...held, spec: { ...held.spec, holderIdentity: '', leaseDurationSeconds: 1 } })
    } catch (error) {
      if (!isStoreError(error, 'Conflict', 'NotFound')) throw error
    }
  }

  #hasPassed({ spec }: Lease): boolean {
    const now = this.#options.now()
    const text = JSON.stringify(spec)
    if (this.#seen?.text !== text) this.#seen = { text, at: now }
    return now - this.#seen.at >= (spec.leaseDurationSeconds ?? this.#options.durationSeconds) * 1000
  }

  async #take(current: Lease | undefined): Promise<Lease> {
    const { namespace, name, identity, durationSeconds } = this.#options
    const renewTime = microTime()
    const before = current?.spec ?? {}
    const anew = before.holderIdentity !== identity
    const lease: Lease = {
      metadata: current?.metadata ?? { name, namespace },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: durationSeconds,
        acquireTime: anew ? renewTime : (before.acquireTime ?? renewTime),
        renewTime,
        leaseTransitions:
          (current === undefined ? 0 : transitionsOf(current)) + (anew && current !== undefined ? 1 : 0),
      },
    }
    return current === undefined ? this.#create(lease) : this.#put(lease)
  }

  async #read(): Promise<Lease | undefined> {
    try {
      return await this.#options.api.call<Lease>({
        method: 'GET',
        path: objectPath(leases, this.#options),
        urgency: 'lease',
      })
    } catch (error) {
      if (isStoreError(error, 'NotFound')) return undefined
      throw error
    }
  }

  async #create(lease: Lease): Promise<Lease> {
    const { api, namespace } = this.#options
    return api.call({ method: 'POST', path: collectionPath(leases, namespace), body: asLease(lease), urgency: 'lease' })
  }

  /** Bound to the version in it. */
  async #put(lease: Lease): Promise<Lease> {
    const path = objectPath(leases, this.#options)
    return this.#options.api.call({ method: 'PUT', path, body: asLease(lease), urgency: 'lease' })
  }
}

const transitionsOf = ({ spec }: Lease): number => spec.leaseTransitions ?? 0

const asLease = (lease: Lease): object => ({ apiVersion: leases.apiVersion, kind: 'Lease', ...lease })
