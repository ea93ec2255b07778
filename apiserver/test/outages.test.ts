import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { StoreError } from '../../runtime/store/store-error.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, at, created, creation, finished, makeTeam, ORG } from '../../testkit/api-team.ts'
import { type DatabaseLink, databaseLink } from '../../testkit/database-link.ts'
import { testCluster } from '../../testkit/postgres.ts'

describe('outages', () => {
  describe('while the control-plane database is away', () => {
    let link: DatabaseLink
    let api: TestApiServer
    let team: ApiTeam
    before(async () => {
      link = await databaseLink((await testCluster()).socketFolder)
      api = await startTestApiServer({ databaseUrl: plane => link.url(plane.name, 'svc_api') })
      team = await makeTeam(api)
      await created(team.developer, 'steady')
    })
    after(async () => {
      await link.restore()
      await api.stop()
      await link.stop()
    })

    it('answers 503 with Retry-After to reads and mutations, is not ready, and comes back by itself', async () => {
      await link.cut()
      const [read, mutation, ready] = await Promise.all([
        team.viewer.call('getEnvironment', { params: at('steady') }),
        team.developer.call('createEnvironment', { body: creation('never') }),
        api.nobody.call('getReadiness'),
      ])
      assert.deepEqual([read.status, read.body.code], [503, 'database_unavailable'])
      assert.deepEqual([mutation.status, mutation.body.code], [503, 'database_unavailable'])
      assert.deepEqual([ready.status, ready.body.code], [503, 'not_ready'])
      assert.deepEqual((ready.body as { failed?: string[] }).failed, ['database'])
      assert.equal((await api.nobody.call('getHealth')).status, 200, 'the process itself is well')
      await link.restore()
      assert.equal((await team.viewer.call('getEnvironment', { params: at('steady') })).status, 200)
      assert.equal((await created(team.developer, 'after')).state, 'succeeded')
    })

    it('refuses a token with a typo all the same, since no database is asked about it, and none that could be good', async () => {
      const agent = await team.owner.call('createToken', {
        body: { name: 'agent', scopes: ['project:acme/shop:read'], organization_id: ORG },
      })
      const key = await team.owner.call('createApiKey', {
        params: { org: ORG },
        body: { name: 'ci', scopes: ['read'] },
      })
      const ask = async (token: string): Promise<unknown[]> => {
        const { status, body } = await new ApiClient(api.url, token).call('listOrganizations')
        return [status, body.code]
      }
      await link.cut()
      for (const token of [team.owner.token, agent.body.token, key.body.secret]) {
        assert.deepEqual(await ask(token), [503, 'database_unavailable'])
        const head = token.length - 49 // behind the readable part: 43 characters at random, 6 of the checksum
        for (const at of [head, head + 20, head + 42, head + 43, head + 48]) {
          const typo = `${token.slice(0, at)}${token[at] === 'x' ? 'y' : 'x'}${token.slice(at + 1)}`
          assert.deepEqual(await ask(typo), [401, 'invalid_token'], `${at - head}`)
        }
        assert.deepEqual(await ask(token.slice(0, -1)), [401, 'invalid_token'])
      }
      await link.restore()
      assert.deepEqual((await ask(agent.body.token))[0], 200)
    })

    it('loses no acknowledged write over many interruptions, and makes nothing twice', async function () {
      this.timeout(60_000)
      const acknowledged: string[] = []
      let stopped = false
      const isStopped = (): boolean => stopped
      const writer = async (name: string): Promise<void> => {
        for (let i = 0; !isStopped(); i++) {
          const request = { body: { name: `${name}-${i}` }, key: `${name}-${i}` }
          for (;;) {
            const { status } = await team.admin.call('createToken', request)
            if (status === 201) break
            assert.equal(status, 503)
            if (isStopped()) return
            await sleep(20)
          }
          acknowledged.push(`${name}-${i}`)
        }
      }
      const writers = ['a', 'b', 'c'].map(writer)
      for (let i = 0; i < 5 || acknowledged.length <= 5; i++) {
        await sleep(100)
        await link.restore() // every connection is cut, the server is there again at once
      }
      stopped = true
      await Promise.all(writers)
      const rows = await api.plane.database.rows<{ name: string }>(`select name from tokens where user_id = $1`, [
        team.admin.userId,
      ])
      const names = rows.map(row => row.name)
      for (const name of acknowledged) assert.equal(names.filter(each => each === name).length, 1, name)
    })
  })

  describe('while the control-plane database is silent', () => {
    it('answers 503 within its deadline instead of hanging', async function () {
      this.timeout(60_000)
      const link = await databaseLink((await testCluster()).socketFolder)
      const api = await startTestApiServer({
        databaseUrl: plane => link.url(plane.name, 'svc_api'),
        config: { databaseTimeoutMs: 300 },
        operator: false,
      })
      const caller = await api.makeCaller('waiting')
      assert.equal((await caller.call('listTokens')).status, 200)
      link.silence()
      const answer = await caller.call('listTokens')
      assert.deepEqual([answer.status, answer.body.code], [503, 'database_unavailable'])
      await link.restore()
      assert.equal((await caller.call('listTokens')).status, 200)
      await api.stop()
      await link.stop()
    })
  })

  describe('while the resource store is away', () => {
    it('a renewal is 503 and changes nothing, creates are accepted and carried out later', async () => {
      let away = false
      const whenThere = <T>(call: () => Promise<T>): Promise<T> =>
        away ? Promise.reject(new StoreError('Unavailable', 'Away')) : call()
      const api = await startTestApiServer({
        store: (store): ResourceStore => ({
          identity: () => whenThere(() => store.identity()),
          get: (...args) => whenThere(() => store.get(...args)),
          list: (...args) => whenThere(() => store.list(...args)),
          watch: (...args) => store.watch(...args),
          create: (...args) => whenThere(() => store.create(...args)),
          patch: (...args) => whenThere(() => store.patch(...args)),
          patchStatus: (...args) => whenThere(() => store.patchStatus(...args)),
          delete: (...args) => whenThere(() => store.delete(...args)),
        }),
      })
      const team = await makeTeam(api)
      await created(team.developer, 'brief', { kind: 'preview', ttl_hours: 5 })
      const before = await team.viewer.call('getEnvironment', { params: at('brief') })
      away = true
      const renewal = await team.developer.call('renewEnvironment', { params: at('brief'), body: { ttl_hours: 50 } })
      assert.deepEqual([renewal.status, renewal.body.code], [503, 'store_unavailable'])
      const create = await team.developer.call('createEnvironment', { body: creation('patient') })
      assert.equal(create.status, 202)
      away = false
      assert.equal((await finished(team.developer, create.body.id)).state, 'succeeded')
      const after = await team.viewer.call('getEnvironment', { params: at('brief') })
      assert.equal(after.body.expires_at_epoch_seconds, before.body.expires_at_epoch_seconds)
      await api.stop()
    })
  })
})
