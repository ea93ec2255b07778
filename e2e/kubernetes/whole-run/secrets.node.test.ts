/** Over the whole run, no secret was shown by any object but Secrets, by any event, or by any log. Runs after the scenarios. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
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

  it('were shown nowhere', () => assert.deepEqual(release.witness.sightings(), []))
})
