import { setImmediate as nextTurn } from 'node:timers/promises'
import { isStoreError } from '../store/store-error.ts'
import type { ApiRequest, KubernetesApi } from './kubernetes-api.ts'
import type { KubernetesObject } from './kubernetes-object.ts'

/** Small enough that reading a page blocks nobody for long: 500 pods are 1.4 MB. */
const PAGE = 500
const DEADLINE_MS = 30_000

interface Page {
  readonly apiVersion: string
  readonly items: readonly KubernetesObject[]
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string }
}

/**
 * Lists a collection as one consistent snapshot, page by page; `take` sees each page's objects as they come.
 * @returns the version of the snapshot
 */
export const listPages = async <T>(
  api: KubernetesApi,
  path: string,
  query: ApiRequest['query'],
  take: (object: KubernetesObject) => T,
): Promise<{ readonly items: T[]; readonly resourceVersion: string }> => {
  const page = (extra: ApiRequest['query']): Promise<Page> =>
    api.call<Page>({ method: 'GET', path, query: { ...query, ...extra }, deadlineMs: DEADLINE_MS })
  let { items: objects, metadata } = await page({ limit: PAGE })
  let items = objects.map(take)
  while (metadata.continue !== undefined && metadata.continue !== '') {
    await nextTurn()
    try {
      ;({ items: objects, metadata } = await page({ limit: PAGE, continue: metadata.continue }))
      for (const object of objects) items.push(take(object))
    } catch (error) {
      if (!isStoreError(error, 'Gone'))
        throw error
        // The snapshot was compacted away below us: everything at once cannot be.
      ;({ items: objects, metadata } = await page({}))
      items = objects.map(take)
    }
  }
  return { items, resourceVersion: metadata.resourceVersion }
}
