import type { Host } from '../host/host.ts'

/**
 * A host that changes nothing unless we lead. Its calls of the cluster are fenced one by one; this is for what it does to
 * Postgres itself, and so that work which is no longer ours is not begun.
 */
export const fencedHost = (host: Host, mustLead: () => void): Host => {
  const leading = async <T>(work: () => Promise<T>): Promise<T> => {
    mustLead()
    return await work()
  }
  return {
    observe: ref => host.observe(ref),
    signIn: (ref, credentials) => host.signIn(ref, credentials),
    onChange: listener => host.onChange(listener),
    start: (ref, spec) => leading(() => host.start(ref, spec)),
    setDeletionPolicy: (ref, policy) => leading(() => host.setDeletionPolicy(ref, policy)),
    stop: ref => leading(() => host.stop(ref)),
    destroy: (ref, policy) => leading(() => host.destroy(ref, policy)),
    applyCredentials: (ref, credentials) => leading(() => host.applyCredentials(ref, credentials)),
  }
}
