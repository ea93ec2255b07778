/** The port to a Kubernetes API server: raw JSON over kept connections. Nothing is (de)serialized by type. */

/** One call. Paths and names are given as they are; whoever builds a path escapes its parts. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** E.g. `/api/v1/namespaces/x/pods`. */
  readonly path: string
  /** undefined values are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  /** Of the body; `application/json` by default. */
  readonly contentType?:
    | 'application/json'
    | 'application/json-patch+json'
    | 'application/merge-patch+json'
    | 'application/apply-patch+yaml'
  /** By default 10 s. */
  readonly deadlineMs?: number
  /** `lease` calls wait behind nothing. */
  readonly urgency?: 'lease'
  readonly signal?: AbortSignal
}

/** A Kubernetes API server, signed in to. */
export interface KubernetesApi {
  /**
   * One call, its answer parsed.
   * @throws StoreError what the server answered, or `Unavailable` when it did not in time
   */
  call<T>(request: ApiRequest): Promise<T>
  /**
   * A watch: every JSON line, until the server ends the stream or the signal aborts.
   * @throws StoreError as `call`; `Unavailable` when the stream breaks or a line is no JSON
   */
  lines(request: ApiRequest & { readonly signal: AbortSignal }): AsyncIterable<unknown>
  close(): Promise<void>
}
