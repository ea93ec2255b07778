import { isStoreError } from '../store/store-error.ts'
import type { ApiRequest, KubernetesApi } from './kubernetes-api.ts'
import type { KubernetesObject } from './kubernetes-object.ts'
import { listPages } from './list-pages.ts'
import { StreamRefusedError, streamObjects } from './stream-objects.ts'

/** The collections that a server does not stream: asked once for each client, since a server changes when it is restarted. */
const unstreamed = new WeakMap<KubernetesApi, Set<string>>()

/**
 * All of a collection as one consistent snapshot: as a stream where the server has that, else page by page.
 * @returns the version of the snapshot
 */
export const listObjects = async <T>(
  api: KubernetesApi,
  path: string,
  query: ApiRequest['query'],
  take: (object: KubernetesObject) => T,
): Promise<{ readonly items: T[]; readonly resourceVersion: string }> => {
  const refused = unstreamed.get(api) ?? new Set()
  unstreamed.set(api, refused)
  if (!refused.has(path))
    try {
      const { objects, resourceVersion } = await streamObjects(api, path, query)
      return { items: Array.from(objects, take), resourceVersion }
    } catch (error) {
      if (error instanceof StreamRefusedError) refused.add(path)
      // Whoever may list need not be allowed to watch: that can change any time.
      else if (!isStoreError(error, 'Forbidden')) throw error
    }
  return listPages(api, path, query, take)
}
