/** Over the whole run, no secret was shown by any object but Secrets, by any event, or by any log. Runs after the scenarios. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OperationBody } from '../../api-client.ts'
import { Tenant } from '../../tenant.ts'
import { RELEASE_NAMESPACE } from '../installation.ts'
import { installedRelease, type Release } from '../release.ts'

describe('secrets', function () {
  this.timeout(180_000)
  let release: Release
  let tenant: Tenant
  before(async () => {
    release = await installedRelease()
    tenant = await Tenant.create(release.world)
    await tenant.createEnvironment('gone', { deletion_policy: 'delete' })
    await tenant.run('delete', 'gone')
    await tenant.createEnvironment('main', { deletion_policy: 'delete' })
  })
  after(() => tenant.run('delete', 'main'))

  it('are known to whoever looks for them: of the platform, of its database, of every environment', async () => {
    const { password } = new URL((await tenant.connection('main')).connection_uri)
    const { secrets } = release.witness
    assert.match(secrets.get(decodeURIComponent(password)) ?? '', /-app password$|-ops credentials\.json$/)
    const places = new Set(secrets.values())
    for (const place of [
      ...['svc-ca ca.key', 'svc-database password', 'svc-database owner-password', 'svc-database-tls tls.key'],
      'svc-master-key master-key',
    ])
      assert.ok(places.has(`${RELEASE_NAMESPACE}/${place}`), place)
    for (const suffix of [/-tls tls\.key$/, /-ops credentials\.json$/])
      assert.ok(
        [...places].some(place => suffix.test(place)),
        String(suffix),
      )
  })

  it('would be found in an object, an event and a log', async () => {
    const { namespace, name } = tenant.key('main')
    const { witness, kubectl } = release
    const shownIn = (word: string): string[] =>
      witness.sightings(new Map([[word, 'x']])).map(({ shownIn: place }) => place.split(' ')[0]!)
    const label = `planted-${Date.now()}`
    await kubectl.must(['-n', namespace, 'annotate', 'senv', name, `svc.internal/planted=${label}`])
    for (const end = Date.now() + 10_000; shownIn(label).length === 0; ) {
      assert.ok(Date.now() < end, 'What is annotated is not seen')
      await sleep(100)
    }
    // What both programs log, and an event says.
    assert.deepEqual(shownIn('Environment is provisioning'), ['log'])
    assert.deepEqual(shownIn('The data of this environment was removed'), ['Event'])
    const { versions, logs } = witness.seen
    console.log(`      looked at ${versions} versions of objects, ${logs} logs, for ${witness.secrets.size} secrets`)
    assert.ok(versions > 100 && logs > 5)
  })

  it('are known, too, that a failing statement holds, and that a rotation made', async () => {
    const { witness } = release
    const canary = (): string => `canary${randomBytes(12).toString('hex')}`
    const [literal, password, table] = [canary(), canary(), `missing_${randomBytes(6).toString('hex')}`]
    witness.plant('a literal of a statement that failed', literal)
    witness.plant('a password in a statement that was refused', password)
    await tenant.sql('main', async session => {
      await assert.rejects(session.rows(`select '${literal}' from ${table}`))
      await assert.rejects(session.rows(`alter role postgres password '${password}'`))
    })
    const passwordNow = async (): Promise<string> =>
      decodeURIComponent(new URL((await tenant.connection('main')).connection_uri).password)
    const before = await passwordNow()
    const asked = await release.world.api.expect<OperationBody>(202, 'POST', tenant.path('main', '/rotate-credentials'))
    await tenant.succeeded(asked.id)
    const after = await passwordNow()
    assert.notEqual(after, before)
    for (const end = Date.now() + 20_000; ; ) {
      // That the first of them failed stands in the server's log, without its text.
      const failed = witness.sightings(new Map([[table, 'x']])).some(({ shownIn }) => shownIn.startsWith('log '))
      if (failed && witness.secrets.has(before) && witness.secrets.has(after)) break
      assert.ok(Date.now() < end, failed ? 'The passwords are not known' : 'The server’s log is not seen')
      await sleep(100)
    }
  })

  it('were shown nowhere', () => assert.deepEqual(release.witness.sightings(), []))
})
