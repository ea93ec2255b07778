/** Calls an API server by operationId, typed from the contract; every answer is judged by it. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Problem } from '../apiserver/contract/problem.ts'
import type { AnswerOf } from '../apiserver/contract/route.ts'
import { ROUTES, type Routes } from '../apiserver/contract/routes.ts'
import { type ApiAnswer, assertAnswer } from './api-answers.ts'
import { judgeExchange, noteSecrets } from './secrets-of-tests.ts'

export interface ApiRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The Idempotency-Key; a fresh one by default where the route takes one, null: none. */
  readonly key?: string | null
  /** Whether to come again when the login is busy, as clients do; not with a key of the test's own. Default true. */
  readonly patient?: boolean
}

/** Many times what the passwords of a test that comes with all at once take, on a machine that is busy with something else. */
const PATIENCE_MS = 60_000

export type OperationId = keyof Routes

/** The success of a route, or a problem: tests look at the status. */
type Body<Id extends OperationId> = (AnswerOf<Routes[Id]> extends undefined ? unknown : AnswerOf<Routes[Id]>) &
  Pick<Problem, 'type' | 'code' | 'detail' | 'errors'>

/** Sends a request, reads all of its answer, and judges whether that keeps secrets. */
export const send = async (url: string, init: RequestInit): Promise<ApiAnswer> => {
  const response = await fetch(url, { ...init, redirect: 'manual' })
  const text = await response.text()
  const isJson = /json/.test(response.headers.get('content-type') ?? '')
  const answer = {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson && text !== '' ? (JSON.parse(text) as unknown) : undefined,
  }
  const headers = new Headers(init.headers)
  const sent = {
    authorization: headers.get('authorization'),
    idempotencyKey: headers.get('idempotency-key'),
    body: init.body,
  }
  judgeExchange(`${init.method ?? 'GET'} ${new URL(url).pathname}`, sent, answer)
  return answer
}

export class ApiClient {
  readonly baseUrl: string
  #token: string | undefined

  constructor(baseUrl: string, token?: string) {
    this.baseUrl = baseUrl
    this.#token = token
    noteSecrets(token)
  }

  /** As a console does: the token of a session is replaced by the one that an answer tells. */
  #goOnWith(next: string | null): void {
    if (next !== null) this.#token = next
  }

  /** Calls a route, right or wrong as the test wants it. */
  async call<Id extends OperationId>(operationId: Id, request: ApiRequest = {}): Promise<ApiAnswer<Body<Id>>> {
    const until = request.patient === false || typeof request.key === 'string' ? 0 : Date.now() + PATIENCE_MS
    for (;;) {
      const answer = await this.#callOnce(operationId, request)
      if (answer.status !== 503 || answer.body.code !== 'login_busy' || Date.now() > until) return answer
      await sleep(200)
    }
  }

  async #callOnce<Id extends OperationId>(operationId: Id, request: ApiRequest): Promise<ApiAnswer<Body<Id>>> {
    const route = ROUTES[operationId]
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
      encodeURIComponent(request.params?.[name] ?? `missing-${name}`),
    )
    const query = new URLSearchParams(
      Object.entries(request.query ?? {}).map(([name, value]) => [name, String(value)] as [string, string]),
    )
    const key = request.key === undefined && route.idempotency !== 'none' ? randomUUID() : request.key
    const answer = await send(`${this.baseUrl}${path}${query.size > 0 ? `?${query.toString()}` : ''}`, {
      method: route.method.toUpperCase(),
      headers: {
        ...(this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` }),
        ...(typeof key === 'string' ? { 'Idempotency-Key': key } : {}),
        ...(request.body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...request.headers,
      },
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
    })
    this.#goOnWith(answer.headers.get('svc-session-token'))
    assertAnswer(route, answer)
    return answer as ApiAnswer<Body<Id>>
  }
}
