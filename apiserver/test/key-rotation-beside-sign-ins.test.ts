import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { createSealer } from '../../lib/credentials/seal.ts'
import { newTotpSecret } from '../../lib/credentials/totp.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiProcess, type ProcessPlace, processPlace, startApiProcess } from '../../testkit/api-process.ts'
import { sized } from '../../testkit/full.ts'
import { keySettings, rotateKeys } from '../../testkit/rotate-keys.ts'
import { codeOf } from '../../testkit/second-factor.ts'
import { noteSecrets } from '../../testkit/secrets-of-tests.ts'
import { fromAnywhere, passwordAccounts, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { secretPlace } from '../store/login/second-factors.ts'

describe('the master key of very many second factors', function () {
  this.timeout(120_000)
  const PEOPLE = sized(800, 4_000)
  const ENOUGH = sized(1, 5)
  const [old, fresh] = [randomBytes(32), randomBytes(32)]
  const { kid } = createSealer({ current: fresh })
  let place: ProcessPlace
  /** One seals with the old key still, one with the new one; each knows both. */
  let servers: readonly ApiProcess[] = []
  before(async () => {
    for (const key of [old, fresh]) noteSecrets(key.toString('base64'))
    place = await processPlace({ SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' })
    // The first to start draws what the old key seals.
    servers = [
      await startApiProcess(place, keySettings(old, [fresh])),
      await startApiProcess(place, keySettings(fresh, [old])),
    ]
  })
  after(async () => {
    await Promise.all(servers.map(each => each.stop()))
    await place.plane.database.stop()
  })

  interface Somebody {
    readonly id: string
    readonly email: string
    readonly secret: string
  }
  /** People with a password and a second factor that the old key sealed. */
  const makePeople = async (): Promise<Somebody[]> => {
    const { database } = place.plane
    const sealer = createSealer({ current: old })
    const emails = await passwordAccounts(place.plane, PEOPLE)
    const rows = await database.rows<{ id: string; email: string }>(
      'select user_id as id, email from users where email = any($1)',
      [emails],
    )
    const people = rows.map(row => ({ ...row, secret: newTotpSecret() }))
    await database.rows(
      `insert into second_factors (user_id, sealed_secret, version, enabled_at)
         select id, sealed, 1, now() from unnest($1::text[], $2::text[]) t (id, sealed)`,
      [people.map(({ id }) => id), people.map(({ id, secret }) => sealer.seal(secretPlace(id, 1), secret))],
    )
    return people
  }
  const signIn = async ({ url }: ApiProcess, { email, secret }: Somebody): Promise<number> => {
    const body = { email, password: TEST_PASSWORD, totp_code: codeOf(secret) }
    return (await new ApiClient(url).call('signIn', { body, headers: fromAnywhere() })).status
  }
  /** How many of them the new key wraps. */
  const wrapped = async (): Promise<number> =>
    (await place.plane.database.row<{ n: number }>(
      'select count(*)::int as n from second_factors where starts_with(sealed_secret, $1)',
      [`v1.${kid}.`],
    ))!.n

  /** From now on each row is changed slowly, until what this answers is called: sign-ins of a busy machine are slow too. */
  const slowDown = async (): Promise<() => Promise<void>> => {
    const admin = new pg.Client({ connectionString: place.plane.url('postgres') })
    await admin.connect()
    await admin.query(`
      create table pace (slow boolean not null);
      insert into pace values (true);
      create function keep_pace() returns trigger language plpgsql security definer as
        'begin if (select slow from pace) then perform pg_sleep(0.005); end if; return new; end';
      create trigger pace before update of sealed_secret on second_factors for each row execute function keep_pace()`)
    return async () => {
      await admin.query('update pace set slow = false')
      await admin.end()
    }
  }

  it('is changed by the command while people sign in at two processes, all the time, and none fails', async () => {
    const people = await makePeople()
    const hurry = await slowDown()
    assert.equal(await wrapped(), 0)
    const statuses = new Set<number>()
    /** Of each server: sign-ins that began after the first row was wrapped, and ended before the last one was. */
    const during = servers.map(() => 0)
    let isOver = false
    let hurried: Promise<void> | undefined
    const rotating = rotateKeys(place.plane, fresh, [old]).finally(() => (isOver = true))
    const keepSigningIn = async (n: number): Promise<void> => {
      while (!isOver) {
        const before = await wrapped()
        statuses.add(await signIn(servers[n]!, people.pop()!))
        if (before > 0 && (await wrapped()) < PEOPLE) during[n]!++
        if (during.every(each => each >= ENOUGH)) await (hurried ??= hurry())
      }
    }
    const [done] = await Promise.all([rotating, ...servers.map((_, n) => keepSigningIn(n))])
    assert.equal(done.code, 0, done.stderr)
    // All of them, and the root of derived keys.
    assert.equal(done.stdout, `Wrapped ${PEOPLE + 1} rows with master key ${kid}\n`)
    assert.equal(await wrapped(), PEOPLE)
    assert.deepEqual([...statuses], [200])
    await (hurried ??= hurry())
    assert.ok(
      during.every(each => each >= ENOUGH),
      `${during.join(' and ')} signed in meanwhile`,
    )

    const both = servers
    servers = await Promise.all(servers.map(() => startApiProcess(place, keySettings(fresh))))
    await Promise.all(both.map(each => each.stop()))
    for (const server of servers)
      for (const somebody of people.splice(0, 3)) assert.equal(await signIn(server, somebody), 200)
  })
})
