/** Judges an answer by the document, and by nothing else. */
import type { ApiAnswer } from '../api-answers.ts'
import type { FuzzedRequest } from './draw-request.ts'
import type { Operation } from './openapi-operations.ts'

/** Refusals with a 5xx that say what is the case: a flood of passwords is turned away, and a provider that is none does not answer. */
const SAID = new Set(['login_busy', 'identity_provider_unavailable'])
/** What any path can be answered, whether an operation is there or not. */
const ANYWHERE: ReadonlyMap<number, string> = new Map([
  [404, 'route_not_found'],
  [405, 'method_not_allowed'],
])
const PROBLEM_MEDIA_TYPE = 'application/problem+json'

interface ProblemBody {
  readonly status?: unknown
  readonly code?: unknown
  readonly request_id?: unknown
}

export class AnswerJudge {
  readonly #operations: readonly Operation[]
  readonly #codes: ReadonlyMap<number, ReadonlySet<string>>

  constructor(operations: readonly Operation[]) {
    this.#operations = operations
    const codes = new Map<number, Set<string>>()
    for (const { answers } of operations)
      for (const [status, answer] of answers)
        codes.set(status, new Set([...(codes.get(status) ?? []), ...answer.codes]))
    this.#codes = codes
  }

  /** What is wrong with an answer; undefined: nothing. */
  fault({ operation, request, isMoved }: FuzzedRequest, answer: ApiAnswer, canary: string): string | undefined {
    const { status, text, headers } = answer
    const { code } = (answer.body ?? {}) as ProblemBody
    if (text.includes(canary) || [...headers].join().includes(canary)) return 'what was secret comes back'
    if (status >= 500 && !SAID.has(String(code))) return `${status}`
    if (status < 200) return `${status}`
    return isMoved ? this.#moved(answer) : this.#documented(operation, answer, request.method)
  }

  #documented(operation: Operation, answer: ApiAnswer, method: string): string | undefined {
    const { status, body, text } = answer
    const documented = operation.answers.get(status)
    if (documented === undefined) return `${status} is not documented of ${operation.operationId}`
    if (method === 'HEAD' || documented.bodies.size === 0)
      return text === '' ? undefined : 'a body where none is documented'
    const type = answer.headers.get('content-type') ?? ''
    const fits = documented.bodies.get(type.replace(/; charset=utf-8$/, ''))
    if (fits === undefined) return `the type ${type} is not documented`
    if (!fits(body)) return `another form: ${JSON.stringify(fits.errors)}`
    return status < 400 ? undefined : this.#problem(answer, new Set(documented.codes))
  }

  /** A changed path or method may reach nothing, or any other operation, whose answers then hold. */
  #moved(answer: ApiAnswer): string | undefined {
    const { status } = answer
    if (status < 400) {
      const isSome = this.#operations.some(each => this.#documented(each, answer, each.method) === undefined)
      return isSome ? undefined : `no operation answers ${status} so`
    }
    if (![PROBLEM_MEDIA_TYPE, 'application/json'].includes(answer.headers.get('content-type') ?? ''))
      return 'no problem document'
    const codes = new Set(this.#codes.get(status))
    const anywhere = ANYWHERE.get(status)
    if (anywhere !== undefined) codes.add(anywhere)
    const fits = this.#operations[0]?.answers.get(400)?.bodies.get(PROBLEM_MEDIA_TYPE)
    if (fits === undefined || !fits(answer.body)) return `no problem: ${JSON.stringify(fits?.errors)}`
    return this.#problem(answer, codes)
  }

  #problem({ status, body, headers }: ApiAnswer, codes: ReadonlySet<string>): string | undefined {
    const { code, status: said, request_id: id } = body as ProblemBody
    if (said !== status) return `says ${String(said)} and is ${status}`
    if (!codes.has(String(code))) return `the code ${String(code)} is not documented with ${status}`
    if (id !== headers.get('x-request-id') && !headers.has('idempotency-replayed')) return 'another request id'
    if (status === 401 && !headers.has('www-authenticate')) return 'no WWW-Authenticate'
    if ((status === 429 || status === 503) && !headers.has('retry-after')) return 'no Retry-After'
    return undefined
  }
}
