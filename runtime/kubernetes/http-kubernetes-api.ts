import { isDeepStrictEqual } from 'node:util'
import type { Dispatcher } from 'undici'
import { backoffMs } from '../controller/backoff.ts'
import { type Clock, sleep, systemClock } from '../controller/clock.ts'
import type { StoreClock } from '../store/store-clock.ts'
import { isStoreError, StoreError } from '../store/store-error.ts'
import { ConnectionPools } from './connection-pools.ts'
import { BadLineError, jsonLines } from './json-lines.ts'
import type { ApiRequest, KubernetesApi } from './kubernetes-api.ts'
import { resourceOf } from './object-path.ts'
import type { ClusterAccess, SignIn } from './sign-in.ts'
import { answerError, retryAfterMs } from './status-error.ts'
import { silentTransportMetrics, type TransportMetrics } from './transport-metrics.ts'

export interface HttpKubernetesApiOptions {
  readonly access: ClusterAccess
  /** Sent as User-Agent, `name/version`: audit logs tell callers apart by it. */
  readonly userAgent: string
  readonly metrics?: TransportMetrics | undefined
  /** Whether calls that change something may be made now: asked before each, and as its bytes leave. Leases are not asked for. */
  readonly mayWrite?: (() => boolean) | undefined
  /** Told what the API server says the time is. */
  readonly time?: StoreClock | undefined
  readonly clock?: Clock
  /** 0 ≤ x < 1. */
  readonly random?: () => number
}

const DEADLINE_MS = 10_000
const LEASE_DEADLINE_MS = 5_000
/** A watch begins with headers at once, unless the server's own cache is being filled. */
const WATCH_HEADERS_MS = 30_000
const MOST_ATTEMPTS = 5
const RETRY = { baseMs: 100, capMs: 2_000 }
/** Errors of connections that never were: no request was sent. */
const NEVER_SENT = new Set<unknown>([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** An answer that is no success. */
class Refusal extends Error {
  readonly code: number
  readonly afterMs: number | undefined
  readonly error: StoreError

  constructor(code: number, body: string, retryAfter: string | string[] | undefined) {
    super()
    this.code = code
    this.error = answerError(code, body)
    this.afterMs = retryAfterMs(retryAfter, body)
  }
}

/** What an attempt is made with. */
interface Attempt {
  readonly request: ApiRequest
  readonly pool: 'reads' | 'writes' | 'watches' | 'leases'
  readonly signal: AbortSignal
  /** In milliseconds of the clock. */
  readonly until: number
  /** Not counting the one that renews the sign-in. */
  readonly most: number
}

/** Whether the same request may safely be made twice. Merge patches may not: the second could undo somebody's change. */
const isIdempotent = ({ method, contentType, body }: ApiRequest): boolean =>
  method === 'GET' ||
  (method === 'PATCH' && contentType === 'application/apply-patch+yaml') ||
  (method === 'DELETE' &&
    (body as { readonly preconditions?: { readonly uid?: string } } | undefined)?.preconditions?.uid !== undefined)

/** Whether an attempt that failed like this may be made again; 429 says that nothing was done. */
const mayRepeat = (request: ApiRequest, error: unknown): boolean => {
  if (isStoreError(error)) return false
  if (error instanceof Refusal) return error.code === 429 || (error.code >= 500 && isIdempotent(request))
  return isIdempotent(request) || NEVER_SENT.has((error as { readonly code?: unknown }).code)
}

const unavailable = ({ method, path }: ApiRequest, why: string, cause: unknown): StoreError =>
  new StoreError('Unavailable', `Cannot ${method} ${path} of the Kubernetes API server: ${why}`, { cause })

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const withQuery = (path: string, query: ApiRequest['query'] = {}): string => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value))
  return parameters.size === 0 ? path : `${path}?${parameters.toString()}`
}

/** A KubernetesApi over HTTP/1.1. */
export class HttpKubernetesApi implements KubernetesApi {
  readonly #access: ClusterAccess
  readonly #userAgent: string
  readonly #metrics: TransportMetrics
  readonly #mayWrite: (() => boolean) | undefined
  readonly #time: StoreClock | undefined
  readonly #clock: Clock
  readonly #random: () => number
  #signIn: SignIn | undefined
  #pools: ConnectionPools | undefined
  #closed = false

  constructor({ access, userAgent, metrics, mayWrite, time, clock, random }: HttpKubernetesApiOptions) {
    this.#access = access
    this.#userAgent = userAgent
    this.#metrics = metrics ?? silentTransportMetrics
    this.#mayWrite = mayWrite
    this.#time = time
    this.#clock = clock ?? systemClock
    this.#random = random ?? Math.random
  }

  async call<T>(request: ApiRequest): Promise<T> {
    const { urgency, deadlineMs = urgency === 'lease' ? LEASE_DEADLINE_MS : DEADLINE_MS } = request
    const pool = urgency === 'lease' ? 'leases' : request.method === 'GET' ? 'reads' : 'writes'
    return this.#within(request, deadlineMs, (signal, until) =>
      this.#repeat({ request, pool, signal, until, most: MOST_ATTEMPTS }, async body => {
        const text = await body.text()
        return (text === '' ? undefined : JSON.parse(text)) as T
      }),
    )
  }

  async *lines(request: ApiRequest & { readonly signal: AbortSignal }): AsyncGenerator {
    const { signal, deadlineMs } = request
    const ending = new AbortController()
    const overdue = deadlineMs === undefined ? undefined : this.#clock.after(deadlineMs, () => ending.abort())
    const resource = resourceOf(request.path)
    try {
      if (signal.aborted) return
      const body = await this.#within(request, WATCH_HEADERS_MS, async (beginning, until) => {
        // Lasts as long as the stream; `beginning` has a deadline that no longer counts then.
        const lasting = AbortSignal.any([beginning, ending.signal])
        // Once: whoever watches has a back-off of its own.
        return this.#repeat({ request, pool: 'watches', signal: lasting, until, most: 1 }, async stream => stream)
      })
      this.#metrics.watching(resource, 1)
      try {
        yield* jsonLines(body)
      } finally {
        this.#metrics.watching(resource, -1)
        body.on('error', () => undefined).destroy()
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof BadLineError) this.#metrics.badLine(resource)
      throw isStoreError(error) ? error : unavailable(request, reasonOf(error), error)
    } finally {
      overdue?.()
    }
  }

  /** Ends every call and watch; none works any more. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#pools?.destroy()
  }

  /** Runs until a deadline, and turns whatever it throws into what callers may see. */
  async #within<T>(
    request: ApiRequest,
    deadlineMs: number,
    run: (signal: AbortSignal, until: number) => Promise<T>,
  ): Promise<T> {
    const deadline = new AbortController()
    const cancel = this.#clock.after(deadlineMs, () => deadline.abort())
    const caller = request.signal
    try {
      caller?.throwIfAborted()
      const signal = caller === undefined ? deadline.signal : AbortSignal.any([caller, deadline.signal])
      return await run(signal, this.#clock.now() + deadlineMs)
    } catch (error) {
      caller?.throwIfAborted()
      if (error instanceof Refusal) throw error.error
      if (isStoreError(error)) throw error
      throw unavailable(request, deadline.signal.aborted ? `no answer within ${deadlineMs} ms` : reasonOf(error), error)
    } finally {
      cancel()
    }
  }

  /** Makes attempts until one succeeds, or another would be wrong or too late. Throws what the last one met. */
  async #repeat<T>(attempt: Attempt, read: (body: Dispatcher.ResponseData['body']) => Promise<T>): Promise<T> {
    const { request, signal, until, most } = attempt
    let renew = false
    for (let failures = 0; ; ) {
      try {
        return await this.#attempt(attempt, renew, read)
      } catch (error) {
        const unauthorized = error instanceof Refusal && error.code === 401
        if (unauthorized && !renew) {
          renew = true
          continue
        }
        renew = false
        const waitMs = Math.max(
          (error instanceof Refusal ? error.afterMs : undefined) ?? 0,
          backoffMs(RETRY, failures, this.#random),
        )
        failures += 1
        // A watch waits out a 429 that says how long, since its own back-off knows nothing of that.
        const told = error instanceof Refusal && error.code === 429 && error.afterMs !== undefined
        const again = mayRepeat(request, error) && (failures < most || (told && failures < MOST_ATTEMPTS))
        if (!again || signal.aborted || this.#closed || this.#clock.now() + waitMs >= until) throw error
        this.#metrics.retried(request.method, resourceOf(request.path))
        await sleep(this.#clock, waitMs, signal)
      }
    }
  }

  async #attempt<T>(
    { request, pool, signal }: Attempt,
    renew: boolean,
    read: (body: Dispatcher.ResponseData['body']) => Promise<T>,
  ): Promise<T> {
    const { method, path, query, body, contentType = 'application/json' } = request
    const { pools, headers } = await this.#connections(renew, signal)
    if (pool === 'writes' && this.#mayWrite?.() === false)
      throw new StoreError('Unavailable', `Cannot ${method} ${path}: this process may not write now`)
    const startedAt = this.#clock.now()
    let code = '<error>'
    try {
      const answer = await pools[pool].request({
        method,
        path: `${this.#access.prefix}${withQuery(path, query)}`,
        headers: {
          ...headers,
          accept: 'application/json',
          'user-agent': this.#userAgent,
          ...(body !== undefined && { 'content-type': contentType }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal,
      })
      code = String(answer.statusCode)
      this.#time?.note(Date.parse(String(answer.headers['date'])))
      if (answer.statusCode >= 200 && answer.statusCode < 300) return await read(answer.body)
      throw new Refusal(answer.statusCode, await answer.body.text(), answer.headers['retry-after'])
    } finally {
      const verb = pool === 'watches' ? 'WATCH' : method
      this.#metrics.requested(verb, resourceOf(path), code, (this.#clock.now() - startedAt) / 1000)
    }
  }

  /** The pools of the present TLS material, and the headers that sign in. */
  async #connections(
    renew: boolean,
    signal: AbortSignal,
  ): Promise<{ pools: ConnectionPools; headers: SignIn['headers'] }> {
    const signIn = await before(signal, this.#access.signIn(renew))
    if (this.#closed) throw new Error('the client is closed')
    const former = this.#signIn
    this.#signIn = signIn
    if (this.#pools === undefined || (signIn !== former && !isDeepStrictEqual(signIn.tls, former?.tls))) {
      void this.#pools?.retire().catch(() => undefined)
      this.#pools = new ConnectionPools(this.#access.origin, signIn.tls, this.#mayWrite)
    }
    return { pools: this.#pools, headers: signIn.headers }
  }
}

/** The promise's value. @throws when the signal aborts first; what comes later is dropped */
const before = async <T>(signal: AbortSignal, promise: Promise<T>): Promise<T> => {
  promise.catch(() => undefined)
  const { promise: late, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(new Error('the sign-in took too long'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([promise, late])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
