import assert from 'node:assert/strict'
import type { ApiAnswer } from '../api-answers.ts'
import { SeededRandom } from '../seeded-random.ts'
import { drawRequest, type FuzzedRequest, type World } from './draw-request.ts'
import { AnswerJudge } from './judge-answer.ts'
import { readOperations } from './openapi-operations.ts'
import { textOf, valueOf } from './schema-values.ts'

const WORLD: World = { tokens: ['a-token'], session: 'a-session', things: { org: 'acme' }, canary: 'a-canary' }
const operations = readOperations()
const judge = new AnswerJudge(operations)

const asked = (operationId: string, isMoved = false): FuzzedRequest => {
  const operation = operations.find(each => each.operationId === operationId)
  assert.ok(operation)
  return { operation, request: { method: operation.method, target: '/', headers: [] }, faults: [], isMoved }
}
const PROJECT = {
  organization_id: 'acme',
  project_id: 'shop',
  region: 'local',
  postgres_major: 17,
  protect_production: false,
  created_at: '2026-11-27T10:00:00.000Z',
  updated_at: '2026-11-27T10:00:00.000Z',
}
const problem = (status: number, code: string): Record<string, unknown> => ({
  type: `/problems/${code}`,
  title: 'A title',
  status,
  detail: 'A detail',
  instance: 'urn:svc:request:an-id',
  code,
  request_id: 'an-id',
})
const answer = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): ApiAnswer => ({
  status,
  body,
  text: body === undefined ? '' : JSON.stringify(body),
  headers: new Headers({
    'content-type': status < 400 ? 'application/json; charset=utf-8' : 'application/problem+json',
    'x-request-id': 'an-id',
    ...headers,
  }),
})

describe('the fuzzer', () => {
  it('passes what the document allows', () => {
    const fine: readonly (readonly [FuzzedRequest, ApiAnswer])[] = [
      [asked('getProject'), answer(200, PROJECT)],
      [asked('getProject'), answer(404, problem(404, 'project_not_found'))],
      [asked('signOut'), answer(204, undefined)],
      [asked('getProject', true), answer(404, problem(404, 'route_not_found'))],
      [asked('getOperation', true), answer(200, PROJECT)],
      [asked('getProject'), answer(429, problem(429, 'rate_limited'), { 'retry-after': '1' })],
    ]
    for (const [request, each] of fine) assert.equal(judge.fault(request, each, 'canary'), undefined, each.text)
  })

  const faults: readonly (readonly [what: string, FuzzedRequest, ApiAnswer, found: RegExp])[] = [
    ['a 5xx', asked('getProject'), answer(500, problem(500, 'internal_error')), /^500$/],
    [
      'a status that is not documented',
      asked('getProject'),
      answer(409, problem(409, 'invalid_phase')),
      /not documented/,
    ],
    ['a success that is another', asked('getProject'), answer(201, PROJECT), /201 is not documented/],
    ['a field of another type', asked('getProject'), answer(200, { ...PROJECT, postgres_major: '17' }), /another form/],
    ['a missing field', asked('getProject'), answer(200, { ...PROJECT, region: undefined }), /another form/],
    ['another media type', asked('getProject'), answer(200, PROJECT, { 'content-type': 'text/html' }), /the type/],
    [
      'a problem without a code',
      asked('getProject'),
      answer(404, { ...problem(404, ''), code: undefined }),
      /another form/,
    ],
    [
      'a code of another call',
      asked('getProject'),
      answer(404, problem(404, 'token_not_found')),
      /code token_not_found/,
    ],
    ['a status that differs inside', asked('getProject'), answer(404, problem(400, 'project_not_found')), /says 400/],
    [
      'another request id',
      asked('getProject'),
      answer(404, problem(404, 'project_not_found'), { 'x-request-id': 'b' }),
      /id/,
    ],
    ['no Retry-After', asked('getProject'), answer(429, problem(429, 'rate_limited')), /Retry-After/],
    ['no WWW-Authenticate', asked('getProject'), answer(401, problem(401, 'invalid_token')), /WWW-Authenticate/],
    ['a body of a 204', asked('signOut'), answer(204, {}), /a body/],
    ['no problem from nowhere', asked('getProject', true), answer(404, {}), /no problem/],
    ['what no operation answers', asked('getProject', true), answer(200, { a: 1 }), /no operation/],
    ['a secret', asked('getProject'), answer(404, { ...problem(404, 'project_not_found'), x: 'a-canary' }), /secret/],
  ]
  for (const [what, request, each, found] of faults)
    it(`finds ${what}`, () => {
      assert.match(judge.fault(request, each, 'a-canary') ?? '', found)
    })

  it('asks the same again for the same seed, and every operation, good ones and bad ones', () => {
    const drawn = Array.from({ length: 3000 }, (_, n) => drawRequest(operations, WORLD, 7, n))
    assert.deepEqual(drawRequest(operations, WORLD, 7, 2999), drawn[2999])
    assert.notDeepEqual(drawRequest(operations, WORLD, 8, 2999).request, drawn[2999]?.request)
    const good = new Set(drawn.filter(({ faults: done }) => done.length === 0).map(each => each.operation.operationId))
    assert.equal(good.size, operations.length)
    assert.ok(drawn.filter(({ faults: done }) => done.length > 0).length > 1500)
    assert.ok(drawn.some(({ request }) => request.body?.includes('a-canary') === true))
  })

  it('draws values that fit their schema, and says which patterns it cannot', () => {
    const random = new SeededRandom(1)
    for (const pattern of [
      '^tok_[0-9a-z]{20,40}$',
      '^[a-z0-9][a-z0-9-]{0,62}[a-z0-9]$',
      '^[\\u0021-\\u007e]{1,255}$',
      '^[\\x20-\\x7e]+$',
    ])
      for (let n = 0; n < 50; n++) assert.match(textOf(pattern, random), new RegExp(pattern))
    assert.throws(() => textOf('^(a|b)$', random), /cannot draw/)
    const drawn = new Set(
      Array.from({ length: 50 }, () => valueOf({ type: 'integer', minimum: 1, maximum: 3 }, random, () => undefined)),
    )
    assert.deepEqual([...drawn].sort(), [1, 2, 3])
  })
})
