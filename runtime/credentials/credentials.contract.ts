/** What every Credentials adapter does; each adapter's test file runs it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { CredentialOwner, CredentialSet, Credentials } from './credentials.ts'

/** An adapter under test: `reader` is another client of the same place, as the API server is beside the operator. */
export interface CredentialsFixture {
  readonly writer: Credentials
  readonly reader: Credentials
  /** A namespace that exists. */
  readonly namespace: string
  close(): Promise<void>
}

/** Describes an adapter; `makeFixture` is called once. */
export const describeCredentials = (name: string, makeFixture: () => Promise<CredentialsFixture>): void => {
  describe(`${name} as Credentials`, () => {
    let fixture: CredentialsFixture
    let writer: Credentials
    let reader: Credentials
    before(async () => {
      fixture = await makeFixture()
      writer = fixture.writer
      reader = fixture.reader
    })
    after(async () => fixture.close())

    let serial = 0
    const owner = (ownerName = `env-${++serial}`): CredentialOwner => ({
      namespace: fixture.namespace,
      name: ownerName,
      uid: randomUUID(),
    })
    const set = (password: string): CredentialSet => ({
      app: { username: 'app', password },
      ops: { username: 'svc_ops', password: `ops-${password}` },
    })

    it('reads what another client wrote, and undefined where nothing is', async () => {
      const one = owner()
      assert.equal(await reader.read(one), undefined)
      await writer.write(one, set('first'))
      assert.deepEqual(await reader.read(one), set('first'))
      assert.equal(await reader.read(owner()), undefined)
    })

    it('keeps passwords exactly, whatever is in them', async () => {
      for (const password of ['ünïcödé 🐘', `'";--\\n\n\t$$`, ' ', 'x'.repeat(4000)]) {
        const one = owner()
        await writer.write(one, set(password))
        assert.deepEqual(await reader.read(one), set(password))
      }
    })

    it('a write replaces both roles together; concurrent writes leave one of them whole', async () => {
      const one = owner()
      const passwords = Array.from({ length: 8 }, (_, n) => `p${n}`)
      await Promise.all(passwords.map(password => writer.write(one, set(password))))
      const kept = await reader.read(one)
      assert.ok(passwords.some(password => kept?.app.password === password))
      assert.deepEqual(kept, set(kept!.app.password))
      await writer.write(one, set('last'))
      assert.deepEqual(await reader.read(one), set('last'))
    })

    it('the uid decides: an id used again never meets its predecessor’s, and keeps its own', async () => {
      const [old, young] = [owner('same'), owner('same')]
      await writer.write(old, set('old'))
      assert.equal(await reader.read(young), undefined)
      await writer.write(young, set('young'))
      await writer.delete(old)
      assert.equal(await reader.read(old), undefined)
      assert.deepEqual(await reader.read(young), set('young'))
    })

    it('keeps the passwords of a rotation beside those in force until they are promoted', async () => {
      const one = owner()
      const next = { ...set('second'), rotation: 'r1' }
      await writer.write(one, { ...set('first'), rotation: 'r0', next })
      assert.deepEqual(await reader.read(one), { ...set('first'), rotation: 'r0', next })
      await writer.write(one, next)
      assert.deepEqual(await reader.read(one), next)
      await writer.write(one, set('third'))
      assert.deepEqual(await reader.read(one), set('third'))
    })

    it('a write that is taken for the first and is not replaces what is kept, like any other', async () => {
      const one = owner()
      await writer.write(one, set('first'), { first: true })
      assert.deepEqual(await reader.read(one), set('first'))
      await writer.write(one, set('second'), { first: true })
      assert.deepEqual(await reader.read(one), set('second'))
      assert.equal(await writer.isPublished(one, set('second')), true)
    })

    it('says that what it wrote is published', async () => {
      const one = owner()
      await writer.write(one, set('first'))
      assert.equal(await reader.isPublished(one, set('first')), true)
      await writer.write(one, { ...set('second'), next: { ...set('third'), rotation: 'r1' } })
      assert.equal(await writer.isPublished(one, set('second')), true)
    })

    it('forgets on delete, which is harmless when repeated; a later write starts anew', async () => {
      const one = owner()
      await writer.write(one, set('a'))
      await writer.delete(one)
      await writer.delete(one)
      assert.equal(await reader.read(one), undefined)
      await writer.write(one, set('b'))
      assert.deepEqual(await reader.read(one), set('b'))
    })
  })
}
