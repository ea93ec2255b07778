import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import { SealError } from '../../lib/credentials/seal.ts'
import { storeDatabase } from '../../testkit/embedded-store.ts'
import { describeCredentials } from '../credentials/credentials.contract.ts'
import type { CredentialSet } from '../credentials/credentials.ts'
import { isStoreError } from '../store/store-error.ts'
import { SealedCredentials } from './sealed-credentials.ts'

const MASTER = randomBytes(32)
const open = (url: string, current: Uint8Array = MASTER, previous: Uint8Array[] = []): Promise<SealedCredentials> =>
  SealedCredentials.open({ url, clientName: 'test', masterKeys: { current, previous } })

describeCredentials('SealedCredentials', async () => {
  const url = await storeDatabase()
  const [writer, reader] = await Promise.all([open(url), open(url)])
  return {
    writer,
    reader,
    namespace: 'somewhere',
    close: async () => {
      await Promise.all([writer.close(), reader.close()])
    },
  }
})

describe('SealedCredentials', () => {
  const owner = { namespace: 'ns', name: 'env', uid: randomUUID() }
  const secret: CredentialSet = {
    app: { username: 'app', password: 'canary-app-password' },
    ops: { username: 'svc_ops', password: 'canary-ops-password' },
  }
  let url: string
  let admin: pg.Client
  const opened: SealedCredentials[] = []
  const openHere = async (...keys: Uint8Array[]): Promise<SealedCredentials> => {
    const credentials = await open(url, keys[0], keys.slice(1))
    opened.push(credentials)
    return credentials
  }
  const rows = async (text: string): Promise<Record<string, unknown>[]> =>
    (await admin.query<Record<string, unknown>>(text)).rows
  before(async () => {
    url = await storeDatabase()
    admin = new pg.Client({ connectionString: url })
    await admin.connect()
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(credentials => credentials.close()))
    await admin.query('truncate credentials, seal_canary')
  })
  after(async () => admin.end())

  it('keeps no clear text in the database: neither passwords nor user names', async () => {
    await (await openHere()).write(owner, secret)
    const [row] = await rows('select * from credentials')
    assert.equal(row!['uid'], owner.uid)
    assert.equal(row!['name'], 'env')
    const dump = JSON.stringify([row, await rows('select * from seal_canary')])
    for (const clear of ['canary', 'svc_ops']) {
      assert.ok(!dump.replaceAll('seal_canary', '').includes(clear))
      assert.ok(!dump.includes(Buffer.from(clear).toString('base64url').slice(0, -2)))
    }
  })

  it('refuses a wrong master key before anything is written, also on a database without credentials', async () => {
    const first = await openHere()
    await assert.rejects(open(url, randomBytes(32)), SealError)
    await first.write(owner, secret)
    await assert.rejects(open(url, randomBytes(32)), SealError)
    assert.deepEqual(await first.read(owner), secret)
    assert.equal((await rows('select kid from credentials')).length, 1)
  })

  it('refuses a short master key', async () => {
    await assert.rejects(open(url, randomBytes(31)), SealError)
    assert.deepEqual(await rows('select * from seal_canary'), [])
  })

  it('rotates: rewraps with the new key, after which the old one is not needed', async () => {
    await (await openHere()).write(owner, secret)
    const next = randomBytes(32)
    assert.deepEqual(await (await openHere(next, MASTER)).read(owner), secret)
    assert.deepEqual(await (await openHere(next)).read(owner), secret)
    await assert.rejects(open(url), SealError)
  })

  it('does not open a row put in another’s place, nor an older version put back', async () => {
    const credentials = await openHere()
    const other = { ...owner, uid: randomUUID() }
    await credentials.write(owner, secret)
    await credentials.write(other, secret)
    const [before] = await rows(`select sealed from credentials where uid = '${owner.uid}'`)
    await admin.query(`update credentials set sealed = $1 where uid = '${other.uid}'`, [before!['sealed']])
    await assert.rejects(credentials.read(other), SealError)
    await credentials.write(owner, secret)
    await admin.query(`update credentials set sealed = $1 where uid = '${owner.uid}'`, [before!['sealed']])
    await assert.rejects(credentials.read(owner), SealError)
  })

  it('is Unavailable when the database cannot be reached', async () => {
    const away = url.replace(/host=[^&]*/, 'host=%2Fnowhere')
    await assert.rejects(open(away), (error: unknown) => isStoreError(error, 'Unavailable'))
  })
})
