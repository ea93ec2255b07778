/** What the scenarios need of the REST API: raw calls with the answer as it came, and waiting for operations. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { judgeExchange, noteSecrets } from '../testkit/secrets-of-tests.ts'

/** An answer: its status, headers and parsed body. */
export interface Answer<Body> {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Body
}

/** A problem document. */
export interface Problem {
  readonly code: string
  readonly detail?: string
}

export interface OperationBody {
  readonly id: string
  readonly kind: string
  readonly state: 'pending' | 'running' | 'succeeded' | 'failed'
  readonly updated_at: string
  readonly error: string | null
  readonly result: Record<string, unknown> | null
  readonly attempt_count: number
}

export interface EnvironmentBody {
  readonly deletion_policy: string
  readonly environment_id: string
  readonly phase: string
  readonly expires_at_epoch_seconds?: number | null
  readonly status_reason: string | null
}

export interface ConnectionBody {
  readonly connection_uri: string
  readonly external_uri?: string
  readonly ca_certificate?: string
}

export interface AuditEventBody {
  readonly id: number
  readonly actor: string
  readonly action: string
  readonly resource_kind: string
  readonly resource_id: string
  readonly metadata: Record<string, unknown>
}

export interface CallOptions {
  readonly body?: unknown
  /** The Idempotency-Key; mutating calls without one get a key of their own, null sends none. */
  readonly key?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly deadlineMs?: number
}

/** One caller of one base URL. */
export class ApiClient {
  readonly baseUrl: string
  readonly token: string

  constructor(baseUrl: string, token: string) {
    this.baseUrl = baseUrl
    this.token = token
    noteSecrets(token)
  }

  /** One call; any status is an answer, only a broken connection or a passed deadline throws. */
  async call<Body>(method: string, path: string, options: CallOptions = {}): Promise<Answer<Body>> {
    const key = options.key === undefined ? randomUUID() : options.key
    const response = await fetch(`${this.baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(method === 'GET' || key === null ? {} : { 'idempotency-key': key }),
        ...options.headers,
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      signal: AbortSignal.timeout(options.deadlineMs ?? 30_000),
    })
    const text = await response.text()
    const answer = {
      status: response.status,
      headers: response.headers,
      text,
      body: (text === '' ? undefined : JSON.parse(text)) as Body,
    }
    const idempotencyKey = method === 'GET' ? null : key
    const sent = { authorization: undefined, idempotencyKey, body: options.body }
    judgeExchange(`${method} ${path}`, sent, answer)
    return answer
  }

  /** One call that must answer with this status. */
  async expect<Body>(status: number, method: string, path: string, options: CallOptions = {}): Promise<Body> {
    const answer = await this.call<Body>(method, path, options)
    assert.equal(answer.status, status, `${method} ${path} answered ${answer.status}: ${answer.text}`)
    return answer.body
  }

  /** Polls an operation until it ended. */
  async operation(organizationId: string, id: string, deadlineMs = 60_000): Promise<OperationBody> {
    const until = Date.now() + deadlineMs
    for (;;) {
      const operation = await this.expect<OperationBody>(200, 'GET', `/v1/operations/${id}`, {
        headers: { 'x-service-organization-id': organizationId },
      })
      if (operation.state === 'succeeded' || operation.state === 'failed') return operation
      assert.ok(Date.now() < until, `Operation ${id} still ${operation.state} after ${deadlineMs} ms`)
      await sleep(50)
    }
  }
}
