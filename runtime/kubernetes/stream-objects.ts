import { isStoreError, StoreError } from '../store/store-error.ts'
import type { ApiRequest, KubernetesApi } from './kubernetes-api.ts'
import type { KubernetesObject } from './kubernetes-object.ts'
import { type Status, statusError } from './status-error.ts'

/** Marks the bookmark behind the last object of the initial state. */
const INITIAL_STATE_ENDS = 'k8s.io/initial-events-end'
/** A server that knows streaming lists says something all the time; one that does not may never say that it is through. */
const SILENCE_MS = 10_000
/** Beyond this it is not told whether there is an end: less than what a reflector gives a list, so that pages can still be asked for. */
const DEADLINE_MS = 30_000

interface Line {
  readonly type?: string
  readonly object?: KubernetesObject & Status & { readonly code?: number }
}

export interface StreamedObjects {
  readonly objects: Iterable<KubernetesObject>
  readonly resourceVersion: string
}

/** That this server streams no initial state of this collection, and will not in a moment either. */
export class StreamRefusedError extends Error {
  constructor(path: string, why: string, options?: ErrorOptions) {
    super(`The Kubernetes API server does not stream ${path}: ${why}`, options)
    this.name = 'StreamRefusedError'
  }
}

/**
 * Reads a collection as a stream (Kubernetes' WatchList): the server sends object by object and keeps no page of them.
 * The result is as current as a list, and one snapshot: what changes before the bookmark is taken in.
 * @throws StreamRefusedError when the server has no streams, by its word or by its silence
 * @throws StoreError as any watch does: `Unavailable` when the stream breaks
 */
export const streamObjects = async (
  api: KubernetesApi,
  path: string,
  query: ApiRequest['query'],
  { silenceMs = SILENCE_MS, deadlineMs = DEADLINE_MS } = {},
): Promise<StreamedObjects> => {
  const ending = new AbortController()
  const quiet = setTimeout(() => ending.abort(), silenceMs)
  const overdue = setTimeout(() => ending.abort(), deadlineMs)
  const objects = new Map<string, KubernetesObject>()
  try {
    for await (const line of api.lines(streamRequest(path, query, deadlineMs, ending.signal))) {
      quiet.refresh()
      const { type, object = {} } = line as Line
      const { uid = '', resourceVersion = '', annotations } = object.metadata ?? {}
      if (type === 'ERROR') throw refusal(path, object)
      if (type === 'DELETED') objects.delete(uid)
      else if (type !== 'BOOKMARK') objects.set(uid, object)
      else if (annotations?.[INITIAL_STATE_ENDS] === 'true') return { objects: objects.values(), resourceVersion }
    }
    if (ending.signal.aborted) throw new StreamRefusedError(path, 'it does not tell where the initial state ends')
  } catch (error) {
    // It does not know the parameter, or the feature is off.
    if (isStoreError(error, 'Invalid')) throw new StreamRefusedError(path, error.message, { cause: error })
    throw error
  } finally {
    clearTimeout(quiet)
    clearTimeout(overdue)
    ending.abort()
  }
  throw new StoreError('Unavailable', `Cannot read ${path}: the stream ended before the initial state did`)
}

const streamRequest = (path: string, query: ApiRequest['query'], deadlineMs: number, signal: AbortSignal) => ({
  method: 'GET' as const,
  path,
  query: {
    ...query,
    watch: true,
    sendInitialEvents: true,
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: true,
    timeoutSeconds: Math.ceil(deadlineMs / 1000),
  },
  signal,
})

/**
 * An error event. A server whose etcd has no progress requests (before 3.4.31 and 3.5.13) accepts the watch and says so at once,
 * as an internal error within the stream: that is no passing trouble.
 */
const refusal = (path: string, status: Status & { readonly code?: number }): Error => {
  const error = statusError(status.code ?? 500, status)
  const message = status.message ?? ''
  return status.reason === 'InternalError' && message.includes('required storage feature')
    ? new StreamRefusedError(path, message, { cause: error })
    : error
}
