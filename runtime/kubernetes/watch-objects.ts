import { StoreError } from '../store/store-error.ts'
import { isOlder } from '../store/versions.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import type { KubernetesObject } from './kubernetes-object.ts'
import { type Status, statusError } from './status-error.ts'

/** A change as the API server tells it. */
export type ObjectEvent =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: KubernetesObject }
  | { readonly type: 'bookmark'; readonly resourceVersion: string }

export interface WatchObjectsOptions {
  readonly from: string
  readonly labelSelector?: string | undefined
  readonly signal: AbortSignal
}

interface Line {
  readonly type?: string
  readonly object?: KubernetesObject & Status & { readonly code?: number }
}

const CHANGES = { ADDED: 'added', MODIFIED: 'modified', DELETED: 'deleted' } as const

/** The server ends each watch after 5 to 10 minutes: at random, so that those opened together do not return together. */
const timeoutSeconds = (): number => 300 + Math.floor(Math.random() * 300)
/** What a server that forgot to end it is given beyond. */
const GRACE_MS = 60_000

const isChange = (type: string | undefined): type is keyof typeof CHANGES => type !== undefined && type in CHANGES

/**
 * How far a collection is, by the etcd itself. A server whose etcd was set back opens a watch from a version that it has not reached and
 * leaves out everything until then, bookmarks too (seen with 1.34): whoever watches would be blind and not know it.
 */
const newestVersion = async (api: KubernetesApi, path: string, signal: AbortSignal): Promise<string> => {
  const request = { method: 'GET', path, query: { limit: 1 }, signal } as const
  const { metadata } = await api.call<{ readonly metadata: { readonly resourceVersion: string } }>(request)
  return metadata.resourceVersion
}

/**
 * Every change of a collection after a version, until the server or the signal ends it.
 * @throws StoreError `Gone` when the version is too old, or newer than what the server has; `Unavailable` when the stream breaks
 */
export async function* watchObjects(
  api: KubernetesApi,
  path: string,
  { from, labelSelector, signal }: WatchObjectsOptions,
): AsyncGenerator<ObjectEvent> {
  const newest = await newestVersion(api, path, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  if (newest === undefined) return
  if (isOlder(newest, from))
    throw new StoreError('Gone', `${path} is at version ${newest}, which is older than ${from}`)
  const seconds = timeoutSeconds()
  const lines = api.lines({
    method: 'GET',
    path,
    query: { watch: true, allowWatchBookmarks: true, resourceVersion: from, timeoutSeconds: seconds, labelSelector },
    deadlineMs: seconds * 1000 + GRACE_MS,
    signal,
  })
  for await (const line of lines) {
    const { type, object = {} } = line as Line
    if (type === 'ERROR') throw statusError(object.code ?? 500, object)
    if (isChange(type)) yield { type: CHANGES[type], object }
    else if (type === 'BOOKMARK') yield { type: 'bookmark', resourceVersion: object.metadata?.resourceVersion ?? from }
    // What was buffered when the signal aborted is not told.
    if (signal.aborted) return
  }
}
