/**
 * Ports that count their mutating calls and let the process die right after the n-th, before its answer is seen: the
 * crash that leaves the world changed and nobody the wiser. The steps of an undisturbed run are recorded first, so
 * that a new one joins every crash test by itself.
 */
import type { Host } from '../operator/host/host.ts'
import type { Credentials } from '../runtime/credentials/credentials.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'

/** Counts calls across all ports that share it. */
export interface CallCounter {
  /** The mutating calls so far, e.g. `store.patchStatus Environment`. */
  readonly calls: readonly string[]
  /** Runs a mutating call under its name. */
  count<T>(name: string, call: () => Promise<T>): Promise<T>
  /** Runs a call that changes nothing: a dead process does not even read. */
  read<T>(call: () => Promise<T>): Promise<T>
}

/** What a call meets in a process that has died. */
export class Died extends Error {
  constructor() {
    super('The process died')
    this.name = 'Died'
  }
}

/**
 * @param options.dieAfter the number of the last call that happens; undefined: never dies
 * @param options.onDeath how a process dies, e.g. by SIGKILL to itself; by default every later call throws Died
 */
export const callCounter = (
  options: { readonly dieAfter?: number | undefined; readonly onDeath?: () => void } = {},
): CallCounter => {
  const calls: string[] = []
  const { dieAfter = Infinity, onDeath = () => undefined } = options
  let dead = false
  const alive = (): void => {
    if (dead) throw new Died()
  }
  return {
    calls,
    count: async (name, call) => {
      alive()
      calls.push(name)
      const last = calls.length >= dieAfter
      try {
        return await call()
      } finally {
        if (last) {
          dead = true
          onDeath()
          // Whatever the call answered or threw, nobody hears it.
          alive()
        }
      }
    },
    read: async call => {
      alive()
      const answer = await call()
      alive()
      return answer
    },
  }
}

/** Counts what a store is asked to change. */
export const countingStore = (store: ResourceStore, counter: CallCounter): ResourceStore => ({
  identity: () => counter.read(() => store.identity()),
  get: (type, key) => counter.read(() => store.get(type, key)),
  list: (type, selector) => counter.read(() => store.list(type, selector)),
  watch: (type, options) => store.watch(type, options),
  create: (type, resource) => counter.count(`store.create ${type.kind}`, () => store.create(type, resource)),
  patch: (type, key, patch, pre) => counter.count(`store.patch ${type.kind}`, () => store.patch(type, key, patch, pre)),
  patchStatus: (type, key, status, pre) =>
    counter.count(`store.patchStatus ${type.kind}`, () => store.patchStatus(type, key, status, pre)),
  delete: (type, key, pre) => counter.count(`store.delete ${type.kind}`, () => store.delete(type, key, pre)),
})

export const countingCredentials = (credentials: Credentials, counter: CallCounter): Credentials => ({
  read: owner => counter.read(() => credentials.read(owner)),
  isPublished: (owner, set) => counter.read(() => credentials.isPublished(owner, set)),
  write: (owner, set, options) => counter.count('credentials.write', () => credentials.write(owner, set, options)),
  delete: owner => counter.count('credentials.delete', () => credentials.delete(owner)),
})

export const countingHost = (host: Host, counter: CallCounter): Host => ({
  observe: ref => counter.read(() => host.observe(ref)),
  signIn: (ref, set) => counter.read(() => host.signIn(ref, set)),
  start: (ref, spec) => counter.count('host.start', () => host.start(ref, spec)),
  setDeletionPolicy: (ref, policy) =>
    counter.count('host.setDeletionPolicy', () => host.setDeletionPolicy(ref, policy)),
  stop: ref => counter.count('host.stop', () => host.stop(ref)),
  destroy: (ref, policy) => counter.count('host.destroy', () => host.destroy(ref, policy)),
  applyCredentials: (ref, set) => counter.count('host.applyCredentials', () => host.applyCredentials(ref, set)),
  onChange: listener => host.onChange(listener),
})
