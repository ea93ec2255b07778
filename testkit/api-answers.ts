/** Judges answers by the contract: every one that a test gets is looked at, whatever the test is about. */
import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { z } from 'zod'
import { errorMediaTypeOf, PROBLEM_MEDIA_TYPE, problem } from '../apiserver/contract/problem.ts'
import { errorCodesOf, type Route } from '../apiserver/contract/route.ts'
import { ERROR_CODES, type ErrorCode } from '../lib/errors/codes.ts'

/** An answer as a test sees it. */
export interface ApiAnswer<Body = unknown> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
  /** The body's bytes as text. */
  readonly text: string
}

const ajv = new Ajv2020({
  strict: false,
  formats: { 'date-time': /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/, uri: /^https?:\/\/[^/\s]\S*$/ },
})
const validators = new Map<z.ZodType, ValidateFunction>()

/** Strictly: a field that the contract does not name is a fault. */
const validatorOf = (schema: z.ZodType): ValidateFunction => {
  let validator = validators.get(schema)
  if (validator === undefined) {
    validator = ajv.compile(z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }) as object)
    validators.set(schema, validator)
  }
  return validator
}

const assertValid = (schema: z.ZodType, body: unknown, where: string): void => {
  const validator = validatorOf(schema)
  assert.ok(validator(body), `${where}: ${JSON.stringify(validator.errors)} in ${JSON.stringify(body)}`)
}

const SERVER_HEADERS = ['x-request-id', 'cache-control', 'x-content-type-options', 'referrer-policy']

/** What every problem document must be; `codes` are the ones that are documented, undefined: any of ours. */
export const assertProblem = (
  answer: ApiAnswer,
  codes: readonly ErrorCode[] | undefined,
  where: string,
  mediaType = PROBLEM_MEDIA_TYPE,
): void => {
  assert.equal(answer.headers.get('content-type'), mediaType, `${where}: ${answer.text}`)
  assertValid(problem, answer.body, where)
  const body = answer.body as { code: ErrorCode; status: number; request_id: string; instance: string; title: string }
  assert.equal(body.status, answer.status, where)
  assert.equal(ERROR_CODES[body.code].status, answer.status, where)
  assert.equal(ERROR_CODES[body.code].title, body.title, where)
  assert.equal(body.instance, `urn:svc:request:${body.request_id}`, where)
  if (!answer.headers.has('idempotency-replayed'))
    assert.equal(body.request_id, answer.headers.get('x-request-id'), where)
  if (codes !== undefined) assert.ok(codes.includes(body.code), `${where}: ${body.code} is not documented`)
  if (answer.status === 401) assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer realm="svc"/, where)
  if (answer.status === 503 || answer.status === 429)
    assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/, where)
  if (answer.status === 405) assert.match(answer.headers.get('allow') ?? '', /^[A-Z, ]+$/, where)
}

/** No page of another origin may read an answer, or send what needs leave. */
export const assertNoOtherOrigin = ({ headers }: ApiAnswer, where: string): void => {
  const allowed = [...headers.keys()].filter(name => name.startsWith('access-control-'))
  assert.deepEqual(allowed, [], `${where}, and lets other origins in`)
}

/** What every answer of a route must be. */
export const assertAnswer = (route: Route, answer: ApiAnswer): void => {
  const where = `${route.operationId} answered ${answer.status}`
  for (const name of SERVER_HEADERS) assert.ok(answer.headers.has(name), `${where} without ${name}`)
  assertNoOtherOrigin(answer, where)
  if (answer.status >= 400) {
    assertProblem(answer, errorCodesOf(route), where, errorMediaTypeOf(route))
    return
  }
  assert.equal(answer.status, route.success.status, where)
  assert.equal(answer.headers.get('cache-control'), 'no-store', where)
  assert.equal(answer.headers.has('etag'), false, where)
  if (route.success.body === undefined) assert.equal(answer.text, '', where)
  else {
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/, where)
    assertValid(route.success.body, answer.body, where)
  }
  if (route.success.location !== undefined) assert.match(answer.headers.get('location') ?? '', /^\/v1\/./, where)
}
