import assert from 'node:assert/strict'
import { newPersonalToken } from '../../lib/credentials/token.ts'
import type { ErrorCode } from '../../lib/errors/codes.ts'
import { assertProblem } from '../../testkit/api-answers.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, created, makeTeam } from '../../testkit/api-team.ts'
import { closeRawConnections, sendBytes, sendRaw } from '../../testkit/raw-http.ts'

describe('bad input', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer({ environment: { SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' } })
    team = await makeTeam(api)
    await created(team.owner, 'main', { deletion_protection: true })
  })
  after(async () => {
    closeRawConnections()
    await api.stop()
  })

  const host = (): string => `Host: ${new URL(api.url).host}\r\n`
  const raw: readonly (readonly [why: string, bytes: () => string | Buffer, status: number, code: ErrorCode])[] = [
    ['garbage', () => 'garbage\r\n\r\n', 400, 'malformed_request'],
    ['an unknown method', () => `FOO / HTTP/1.1\r\n${host()}\r\n`, 400, 'malformed_request'],
    ['a header without a colon', () => `GET / HTTP/1.1\r\n${host()}nonsense\r\n\r\n`, 400, 'malformed_request'],
    [
      'a control character in a header',
      () => `GET / HTTP/1.1\r\n${host()}A: b\u0001c\r\n\r\n`,
      400,
      'malformed_request',
    ],
    [
      'both a length and chunks',
      () =>
        `POST /v1/environments HTTP/1.1\r\n${host()}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'malformed_request',
    ],
    [
      'two lengths',
      () => `POST /v1/environments HTTP/1.1\r\n${host()}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
      400,
      'malformed_request',
    ],
    [
      'headers over 16 KiB',
      () => `GET / HTTP/1.1\r\n${host()}A: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    ['a URL over 16 KiB', () => `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n${host()}\r\n`, 414, 'uri_too_long'],
    [
      'a URL over 8 KiB',
      () => `GET /${'x'.repeat(9000)} HTTP/1.1\r\n${host()}Connection: close\r\n\r\n`,
      414,
      'uri_too_long',
    ],
    ['no Host', () => 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'malformed_request'],
    [
      'a broken chunk',
      () =>
        `PUT /v1/organizations/acme HTTP/1.1\r\n${host()}Authorization: Bearer ${team.owner.token}\r\nIdempotency-Key: c\r\n` +
        'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
      400,
      'malformed_request',
    ],
  ]
  for (const [why, bytes, status, code] of raw)
    it(`answers ${why} with a problem, ${status} ${code}`, async () => {
      const answer = await sendBytes(api.url, bytes())
      assertProblem(answer, [code], why)
      assert.equal(answer.status, status)
    })

  const get = (path: string, headers: readonly [string, string][] = []) =>
    sendRaw(api.url, {
      method: 'GET',
      target: path,
      headers: [['Authorization', `Bearer ${team.owner.token}`], ...headers],
    })
  const post = (headers: readonly [string, string][], body: string | Buffer) =>
    sendRaw(api.url, {
      method: 'POST',
      target: '/v1/account/tokens',
      headers: [['Authorization', `Bearer ${team.owner.token}`], ['Idempotency-Key', `k${Math.random()}`], ...headers],
      body: Buffer.from(body),
    })
  const JSON_TYPE: [string, string] = ['Content-Type', 'application/json']

  const exact: readonly (readonly [
    why: string,
    send: () => Promise<Awaited<ReturnType<typeof get>>>,
    status: number,
    code: ErrorCode,
    field?: string,
  ])[] = [
    ['an unknown path', () => get('/v1/nothing'), 404, 'route_not_found'],
    ['a trailing slash', () => get('/v1/organizations/'), 404, 'route_not_found'],
    ['an upper case path', () => get('/V1/organizations'), 404, 'route_not_found'],
    ['a bad percent escape', () => get('/v1/organizations/%E0%A4%A'), 400, 'invalid_encoding'],
    ['NUL in a path', () => get('/v1/organizations/%00'), 400, 'validation_failed', 'org'],
    ['a repeated parameter', () => get('/v1/organizations?limit=1&limit=2'), 400, 'validation_failed', 'limit'],
    ['a 20-digit number', () => get('/v1/organizations?limit=12345678901234567890'), 400, 'validation_failed', 'limit'],
    ['an unknown parameter', () => get('/v1/organizations?limitt=1'), 400, 'validation_failed', 'limitt'],
    ['a cursor of nobody', () => get('/v1/organizations?after=AAAA'), 400, 'validation_failed', 'after'],
    ['an answer nobody can read', () => get('/v1/organizations', [['Accept', 'text/xml']]), 406, 'not_acceptable'],
    ['no content type', () => post([], '{"name":"a"}'), 415, 'unsupported_media_type'],
    ['another content type', () => post([['Content-Type', 'text/plain']], '{}'), 415, 'unsupported_media_type'],
    ['compressed JSON', () => post([JSON_TYPE, ['Content-Encoding', 'gzip']], '{}'), 415, 'unsupported_media_type'],
    ['malformed JSON', () => post([JSON_TYPE], '{"name":'), 400, 'invalid_json'],
    ['a JSON string', () => post([JSON_TYPE], '"x"'), 400, 'validation_failed', '#'],
    ['40,000 nested arrays', () => post([JSON_TYPE], '['.repeat(40_000)), 400, 'invalid_json'],
    ['bad UTF-8', () => post([JSON_TYPE], Buffer.from([0x22, 0xff, 0x22])), 400, 'invalid_encoding'],
    ['a NUL byte in a string', () => post([JSON_TYPE], '{"name":"a\\u0000"}'), 400, 'validation_failed', '#/name'],
    ['a lone surrogate', () => post([JSON_TYPE], '{"name":"\\ud800"}'), 400, 'validation_failed', '#/name'],
    ['a body over 100 KiB', () => post([JSON_TYPE], `{"name":"${'x'.repeat(110_000)}"}`), 413, 'payload_too_large'],
    [
      'a chunked body over 100 KiB',
      () => post([JSON_TYPE, ['Transfer-Encoding', 'chunked']], `{"name":"${'x'.repeat(110_000)}"}`),
      413,
      'payload_too_large',
    ],
    [
      'a field that nobody knows',
      () => post([JSON_TYPE], '{"name":"a","is_admin":true}'),
      400,
      'validation_failed',
      '#/is_admin',
    ],
    ['a missing field', () => post([JSON_TYPE], '{}'), 400, 'validation_failed', '#/name'],
    ['both expiries', () => post([JSON_TYPE], '{"name":"a","ttl":"1h","expires_in_days":1}'), 400, 'expiry_conflict'],
    [
      'two authorizations',
      () => get('/v1/organizations', [['Authorization', 'Bearer x']]),
      400,
      'validation_failed',
      'authorization',
    ],
    [
      'two idempotency keys',
      () => post([JSON_TYPE, ['Idempotency-Key', 'second']], '{"name":"a"}'),
      400,
      'idempotency_key_invalid',
    ],
    [
      'too many header lines',
      () =>
        get(
          '/v1/organizations',
          Array.from({ length: 80 }, (_, i): [string, string] => [`X-${i}`, 'x']),
        ),
      431,
      'headers_too_large',
    ],
  ]
  for (const [why, request, status, code, field] of exact)
    it(`answers ${why} with ${status} ${code}`, async () => {
      const answer = await request()
      assertProblem(answer, [code], why)
      assert.equal(answer.status, status)
      const { errors } = answer.body as { errors?: readonly { pointer: string }[] }
      if (field !== undefined) assert.equal(errors?.[0]?.pointer, field)
    })

  it('answers 405 with the methods of the path', async () => {
    const answer = await sendRaw(api.url, { method: 'DELETE', target: '/v1/environments', headers: [] })
    assertProblem(answer, ['method_not_allowed'], 'DELETE /v1/environments')
    assert.deepEqual(answer.headers.get('allow')?.split(', ').sort(), ['GET', 'HEAD', 'POST'])
  })

  it('lists at most 20 faults and never quotes a value', async () => {
    const body = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`field${i}`, 'canary-value']))
    const answer = await post([JSON_TYPE], JSON.stringify(body))
    assert.equal(answer.status, 400)
    assert.equal((answer.body as { errors: unknown[] }).errors.length, 20)
    assert.ok(!answer.text.includes('canary-value'))
  })

  it('quotes no unknown field that could not be called so: it is content that was sent as a name', async () => {
    const token = newPersonalToken().token
    for (const name of [token, 'a password of mine', '{"password":"mine"}']) {
      const answer = await post([JSON_TYPE], JSON.stringify({ name: 'a', [name]: '' }))
      assertProblem(answer, ['validation_failed'], name)
      assert.ok(!decodeURIComponent(answer.text).includes(name.slice(8)))
    }
  })

  it('serves the next request of the same connection after a refused body', async () => {
    const big = await post([JSON_TYPE], `{"name":"${'x'.repeat(3_000_000)}"}`)
    assert.equal(big.status, 413)
    assert.equal((await get('/v1/organizations')).status, 200)
  })

  it('cannot tell a token that is unknown, malformed or of another kind from one that was revoked', async () => {
    const caller = await api.makeCaller('revoked')
    await caller.call('revokeToken', { params: { token: caller.tokenId } })
    const tokens = [caller.token, newPersonalToken().token, 'svc_pat_x', 'svc_ses_abcdefgh', 'x', 'x'.repeat(600)]
    const answers = await Promise.all(
      tokens.map(token =>
        sendRaw(api.url, {
          method: 'GET',
          target: '/v1/organizations',
          headers: [
            ['Authorization', `Bearer ${token}`],
            ['X-Request-Id', 'the-same-id'],
          ],
        }),
      ),
    )
    assert.deepEqual(new Set(answers.map(answer => `${answer.status} ${answer.text}`)).size, 1)
    assert.equal(answers[0]?.status, 401)
    assert.equal(answers[0].headers.get('www-authenticate'), 'Bearer realm="svc", error="invalid_token"')
  })
})
