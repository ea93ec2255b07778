import { setTimeout as sleep } from 'node:timers/promises'
import type { Credentials } from '../../runtime/credentials/credentials.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'

/** A right that was just given is known to every part of an API server within moments. */
const WAITS_MS = [0, 50, 100, 200, 400]

/**
 * Credentials in namespaces where we have no rights before we have bound ourselves to them: `prepare` does that. A binding
 * that somebody removed is made again.
 */
export const projectCredentials = (
  credentials: Credentials,
  prepare: (namespace: string, options: { readonly afresh: boolean }) => Promise<void>,
): Credentials => {
  const prepared = async <T>(namespace: string, work: () => Promise<T>): Promise<T> => {
    await prepare(namespace, { afresh: false })
    for (const waitMs of WAITS_MS)
      try {
        return await work()
      } catch (error) {
        if (!isStoreError(error, 'Forbidden') || error.refusal !== undefined) throw error
        if (waitMs === 0) await prepare(namespace, { afresh: true })
        await sleep(waitMs)
      }
    return await work()
  }
  return {
    read: owner => prepared(owner.namespace, () => credentials.read(owner)),
    write: (owner, set, options) => prepared(owner.namespace, () => credentials.write(owner, set, options)),
    isPublished: (owner, set) => prepared(owner.namespace, () => credentials.isPublished(owner, set)),
    // In a namespace that is being deleted nothing can be bound, and the Secrets go by themselves.
    delete: owner => credentials.delete(owner),
  }
}
