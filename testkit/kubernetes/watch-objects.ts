/** What is there of one kind, followed by whoever plays a part of the cluster: lists, watches, and lists again after any trouble. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiRequest, KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObject, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { listPages } from '../../runtime/kubernetes/list-pages.ts'
import { collectionPath } from '../../runtime/kubernetes/object-path.ts'

interface WatchLine<O> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: O
}

const AGAIN_MS = 250

/** Calls back with every object as it stands now and whenever it changes; `undefined` says that it is gone. Ends with the signal. */
export const watchObjects = async <O extends KubernetesObject>(
  api: KubernetesApi,
  type: ObjectType<O>,
  signal: AbortSignal,
  onChange: (uid: string, object: O | undefined) => void,
): Promise<void> => {
  const path = collectionPath(type)
  const known = new Set<string>()
  const tell = (object: O, there: boolean): void => {
    const uid = object.metadata?.uid ?? ''
    if (there) known.add(uid)
    else known.delete(uid)
    onChange(uid, there ? object : undefined)
  }
  const list = async (): Promise<string> => {
    const found = new Set<string>()
    const { items, resourceVersion } = await listPages(api, path, {}, object => object as O)
    for (const object of items) {
      found.add(object.metadata?.uid ?? '')
      tell(object, true)
    }
    for (const uid of [...known]) if (!found.has(uid) && known.delete(uid)) onChange(uid, undefined)
    return resourceVersion
  }
  const watch = async (resourceVersion: string): Promise<void> => {
    const query = { watch: true, allowWatchBookmarks: true, timeoutSeconds: 300, resourceVersion }
    const request: ApiRequest & { signal: AbortSignal } = { method: 'GET', path, query, signal }
    for await (const line of api.lines(request) as AsyncIterable<WatchLine<O>>) {
      if (line.type === 'ERROR') return
      if (line.type !== 'BOOKMARK') tell(line.object, line.type !== 'DELETED')
    }
  }
  while (!signal.aborted) {
    try {
      await watch(await list())
    } catch {
      // Whatever it was: list again, soon.
      await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}
