/** Passwords are replaced while a program signs in again and again, reading its Secret each time as if it had just started. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import { Tenant } from '../tenant.ts'
import { installedRelease, type Release } from './release.ts'
import { readAppSecret } from './sign-in-by-secret.ts'

/** One try to sign in, and what it was told: nothing, or an error's code. */
interface Attempt {
  readonly password: string
  readonly refusedBy: string | undefined
}
/** What Postgres says to a wrong password. */
const WRONG_PASSWORD = '28P01'

describe('rotation of passwords on a node', function () {
  this.timeout(300_000)
  let release: Release
  let tenant: Tenant
  let uid: string
  before(async () => {
    release = await installedRelease()
    tenant = await Tenant.create(release.world)
    await tenant.createEnvironment('main', { deletion_policy: 'delete' })
    uid = await tenant.uid('main')
  })
  after(() => tenant.run('delete', 'main'))

  const attempt = async (): Promise<Attempt> => {
    const { uri, ca } = await readAppSecret(release.cluster.objects, tenant.key('main'), uid)
    const { password } = new URL(uri)
    try {
      const session = await release.world.openSql(uri, ca)
      await session.rows('select 1')
      await session.close()
      return { password, refusedBy: undefined }
    } catch (error) {
      return { password, refusedBy: (error as { code?: string }).code ?? String(error) }
    }
  }
  const rotateByApi = async (): Promise<void> => {
    const asked = await release.world.api.expect<{ id: string }>(
      ...([202, 'POST', tenant.path('main', '/rotate-credentials')] as const),
    )
    await tenant.succeeded(asked.id)
  }
  const rotateBySpec = async (): Promise<void> => {
    await release.world.store.patch(
      environmentType,
      tenant.key('main'),
      { spec: { credentialsRotation: 'by-hand' } },
      { uid },
    )
    for (const until = Date.now() + 60_000; ; ) {
      const resource = await release.world.store.get(environmentType, tenant.key('main'))
      if (resource?.status?.credentialsRotation === 'by-hand') return
      assert.ok(Date.now() < until, JSON.stringify(resource?.status))
      await sleep(50)
    }
  }

  it('three times: whoever holds the new Secret is let in from its first moment on', async () => {
    const attempts: Attempt[] = []
    const over = new AbortController()
    const client = (async () => {
      while (!over.signal.aborted) attempts.push(await attempt())
    })()
    const goodOnes = (): number => attempts.filter(({ refusedBy }) => refusedBy === undefined).length
    const severalMore = async (): Promise<void> => {
      const [wanted, until] = [goodOnes() + 3, Date.now() + 60_000]
      while (goodOnes() < wanted) {
        assert.ok(Date.now() < until, JSON.stringify(attempts.slice(-3).map(({ refusedBy }) => refusedBy)))
        await sleep(20)
      }
    }
    try {
      for (const rotate of [rotateByApi, rotateBySpec, rotateByApi]) {
        await severalMore()
        await rotate()
      }
      await severalMore()
    } finally {
      over.abort()
      await client
    }
    const passwords = [...new Set(attempts.map(({ password }) => password))]
    assert.equal(passwords.length, 4)
    const refused = attempts.filter(({ refusedBy }) => refusedBy !== undefined)
    console.log(
      `      ${attempts.length} sign-ins, ${refused.length} refused: read just before their password was replaced`,
    )
    for (const [index, held] of passwords.entries()) {
      const answers = attempts.filter(({ password }) => password === held).map(({ refusedBy }) => refusedBy)
      // The former password ends a moment before the Secret says the new one; what began to be refused is never taken again.
      const end = answers.findIndex(answer => answer !== undefined)
      const good = end < 0 ? answers : answers.slice(0, end)
      assert.ok(good.length > 0, `Password ${index} was refused at first: ${answers.join()}`)
      for (const answer of answers.slice(good.length)) assert.equal(answer, WRONG_PASSWORD, `Password ${index}`)
    }
    assert.equal(attempts.at(-1)?.refusedBy, undefined)
    assert.equal(
      refused.some(({ password }) => password === passwords.at(-1)),
      false,
    )
  })
})
