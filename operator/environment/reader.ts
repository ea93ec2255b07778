/** Where the reconciler reads an Environment: the store itself, or a cache that is no older than our own last write. */
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { LiveView } from '../../runtime/controller/live-view.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'

/** Answers the resource, or undefined. */
export interface EnvironmentReader {
  get(key: ResourceKey): Promise<Environment | undefined>
}

/** Asks the store at every look: cheap where it is a local database, and never old. */
export const freshReader = (store: Pick<ResourceStore, 'get'>): EnvironmentReader => ({
  get: key => store.get(environmentType, key),
})

/** Asks nobody: thousands of environments are looked at without a call. The store is asked where the view is not certain. */
export const cachedReader = (view: Pick<LiveView<Environment>, 'certain'>): EnvironmentReader => ({
  get: key => view.certain(key),
})
