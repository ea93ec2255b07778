/** How the one person of a fresh box gets from its welcome to a session of their own. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApiClient } from './api-client.ts'
import { BoxProcess } from './box-process.ts'

const ADA = { email: 'ada@example.com', password: 'correct horse battery staple' }

describe('the first administrator of a single box', function () {
  this.timeout(120_000)
  let box: BoxProcess
  before(async () => {
    box = await BoxProcess.start()
  })
  after(() => box.remove())

  const shown = (): string | undefined => /Setup token +(\S+)/.exec(box.output)?.[1]
  const post = async (path: string, body: object): Promise<{ status: number; body: Record<string, string> }> => {
    const answer = await fetch(`${box.baseUrl}/v1/auth/builtin/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, string> }
  }
  const setUp = (token: string | undefined) => post('setup', { setup_token: token, ...ADA })

  it('is made with the token that the latest start showed, and signs in by mail address and password from then on', async () => {
    const first = shown()
    assert.match(first ?? '', /^svc_setup_/)
    await box.stop()
    await box.start()
    const latest = shown()
    assert.notEqual(latest, first)
    assert.equal((await setUp(first)).body['code'], 'invalid_setup_token')
    const made = await setUp(latest)
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const session = new ApiClient(box.baseUrl, made.body['token']!)
    await session.expect(200, 'PUT', '/v1/organizations/ada', { body: { name: 'Ada’s' } })
    const signedIn = await post('sign-in', ADA)
    assert.equal(signedIn.status, 200, JSON.stringify(signedIn.body))
    // Scripts go on as before.
    await box.api().expect(200, 'GET', '/v1/organizations')
    assert.equal((await setUp(latest)).status, 409)
    await box.stop()
    await box.start()
    assert.equal(shown(), undefined)
    await new ApiClient(box.baseUrl, signedIn.body['token']!).expect(200, 'GET', '/v1/organizations')
  })

  it('leaves neither token nor password in the home’s files', async () => {
    await box.stop()
    const secrets = [ADA.password, 'svc_setup_']
    for (const file of readdirSync(box.home, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue
      const text = readFileSync(join(file.parentPath, file.name), 'latin1')
      for (const secret of secrets) assert.ok(!text.includes(secret), `${file.name} holds ${secret}`)
    }
  })
})
