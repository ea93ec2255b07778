import assert from 'node:assert/strict'
import { ERROR_CODES } from '../../lib/errors/codes.ts'
import { assertNoOtherOrigin, assertProblem } from '../../testkit/api-answers.ts'
import { send } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { at, makeTeam, ORG } from '../../testkit/api-team.ts'
import { closeRawConnections, sendRaw } from '../../testkit/raw-http.ts'
import { accessSentence } from '../auth/policy.ts'
import { openApiDocument } from '../contract/openapi.ts'
import { ROUTES } from '../contract/routes.ts'

describe('the service around the routes', () => {
  describe('pages', () => {
    let api: TestApiServer
    before(async () => {
      api = await startTestApiServer({ operator: false })
    })
    after(() => {
      closeRawConnections()
      return api.stop()
    })

    const get = (path: string, init: RequestInit = {}) => send(`${api.url}${path}`, init)

    it('health needs no credential', async () => {
      assert.deepEqual((await api.nobody.call('getHealth')).body, { status: 'ok' })
      const ready = await api.nobody.call('getReadiness')
      assert.deepEqual(ready.body, { status: 'ready', checks: { database: 'ok', resources: 'ok' } })
    })

    it('the OpenAPI document is the generated one, cached for a while', async () => {
      const answer = await get('/v1/openapi.json')
      const expected = JSON.parse(JSON.stringify(openApiDocument(Object.values(ROUTES), accessSentence))) as unknown
      assert.deepEqual(answer.body, expected)
      assert.equal(answer.headers.get('cache-control'), 'private, max-age=300')
    })

    it('the reference page and all it asks for come from this server alone', async () => {
      const page = await get('/docs')
      assert.equal(page.status, 200)
      assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
      const policy = page.headers.get('content-security-policy') ?? ''
      assert.match(policy, /default-src 'none'/)
      assert.match(policy, /connect-src 'self'/)
      assert.ok(!/https?:|\*/.test(policy), policy)
      assert.deepEqual(page.text.match(/https?:\/\//g), null)
      const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(match => match[1] ?? '')
      assert.ok(links.length >= 3)
      for (const link of links) {
        const asset = await get(new URL(link, `${api.url}/docs`).pathname)
        assert.equal(asset.status, 200, link)
        assert.ok(asset.text.length > 100, link)
      }
      const script = await get('/docs/reference.js')
      assert.match(script.text, /validatorUrl: null/)
    })

    it('no file is served and no folder listed, whatever of a repository or of the program is asked for', async () => {
      for (const folder of ['', '/v1', '/docs', '/docs/..', '/docs/%2e%2e', '/docs/..%2f'])
        for (const name of [
          '',
          '.git/HEAD',
          '.git/',
          '.svn/entries',
          'package.json',
          'apiserver/main.ts',
          'apiserver/',
          '.env',
        ]) {
          const target = `${folder}/${name}`
          if (target === '/docs/') continue
          const answer = await sendRaw(api.url, { method: 'GET', target, headers: [] })
          assertProblem(answer, ['route_not_found', 'invalid_encoding', 'validation_failed'], target)
        }
    })

    it('each error code has a page that its problems point to', async () => {
      for (const code of Object.keys(ERROR_CODES)) {
        const page = await get(`/problems/${code}`)
        assert.equal(page.status, 200)
        assert.ok(page.text.includes(`<code>${code}</code>`), code)
      }
      assertProblem(await get('/problems/nothing'), ['route_not_found'], 'an unknown code')
      assertProblem(await get('/problems/toString'), ['route_not_found'], 'a property that every object has')
    })

    it('problems point to the public URL where there is one', async () => {
      const public_ = await startTestApiServer({
        operator: false,
        environment: { SERVICE_PUBLIC_URL: 'https://db.example.com/' },
      })
      const answer = await public_.nobody.call('listTokens')
      await public_.stop()
      assert.equal(answer.body.type, 'https://db.example.com/problems/unauthenticated')
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer realm="svc"')
    })

    it('HEAD answers what GET does, without the body', async () => {
      const [head, get_] = [await get('/healthz', { method: 'HEAD' }), await get('/healthz')]
      assert.deepEqual([head.status, head.text], [200, ''])
      assert.equal(head.headers.get('content-length'), get_.headers.get('content-length'))
    })

    it('an id that looks like none is replaced, a good one is kept', async () => {
      const idOf = async (id: string) =>
        (await get('/healthz', { headers: { 'X-Request-Id': id } })).headers.get('x-request-id')
      assert.equal(await idOf('abc-DEF_1.2'), 'abc-DEF_1.2')
      assert.match((await idOf('short')) ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    })

    it('no other origin is let in, whatever it asks for', async () => {
      const origin = { Origin: 'https://elsewhere.example.com' }
      const asked = {
        ...origin,
        'Access-Control-Request-Method': 'DELETE',
        'Access-Control-Request-Headers': 'authorization',
      }
      for (const path of [
        '/healthz',
        '/v1/organizations',
        '/v1/auth/builtin/sign-in',
        '/v1/openapi.json',
        '/docs',
        '/nowhere',
      ])
        for (const init of [
          { headers: origin },
          { headers: { ...origin, Authorization: 'Bearer null' } },
          { method: 'OPTIONS', headers: asked },
        ])
          assertNoOtherOrigin(await get(path, init), `${init.method ?? 'GET'} ${path}`)
    })

    it('requests are counted by route template, never by id', async () => {
      const caller = await api.makeCaller('counted')
      await caller.call('getOrganization', { params: { org: 'secret-org' } })
      const metrics = await api.registry.metrics()
      assert.match(
        metrics,
        /svc_http_request_duration_seconds_count\{method="GET",route="\/v1\/organizations\/\{org\}",status="404"\} 1/,
      )
      assert.ok(!metrics.includes('secret-org'))
    })
  })

  it('puts no canary into logs, problems, audit or metrics', async () => {
    const api = await startTestApiServer()
    const team = await makeTeam(api)
    const canary = 'canary7f3a'
    const secrets = [team.owner.token, team.developer.token, canary]
    const answers = [
      await team.owner.call('createToken', { body: { name: 'x', unknown: canary, password: canary } }),
      await team.owner.call('createToken', { body: { name: 'x' }, headers: { Cookie: `session=${canary}` } }),
      await send(`${api.url}/v1/organizations?signature=${canary}`, { headers: { Authorization: `Bearer ${canary}` } }),
      await send(`${api.url}/v1/environments`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${team.owner.token}`,
          'Content-Type': 'application/json',
          'Idempotency-Key': 'k',
        },
        body: `{"password":"${canary}`,
      }),
      await team.owner.call('getEnvironment', { params: { ...at('x1'), env: `${canary}!` } }),
    ]
    const made = answers[1]?.body as { token?: string }
    secrets.push(made.token ?? 'nothing')
    const audit = await team.owner.call('listAuditEvents', { params: { org: ORG }, query: { limit: 200 } })
    const metrics = await api.registry.metrics()
    await api.stop()
    const sinks = {
      log: api.logged.join('\n'),
      problems: answers
        .filter(answer => answer.status >= 400)
        .map(answer => answer.text)
        .join('\n'),
      audit: audit.text,
      metrics,
    }
    for (const [sink, text] of Object.entries(sinks))
      for (const secret of secrets) assert.ok(!text.includes(secret), `${sink} holds ${secret}`)
  })
})
