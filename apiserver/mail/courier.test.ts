import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { createSealer } from '../../lib/credentials/seal.ts'
import { jsonLog } from '../../runtime/log/json-log.ts'
import { silentLog } from '../../runtime/log/log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import type { CourierOrders } from '../../testkit/courier-child.ts'
import { sized } from '../../testkit/full.ts'
import {
  type MailRelay,
  type Respond,
  startMailRelay,
  type TestAuthority,
  testAuthority,
} from '../../testkit/mail-servers.ts'
import type { WebhookConfig } from '../config/mail.ts'
import type { Database } from '../store/database.ts'
import { Courier } from './courier.ts'
import { openMailTransport } from './open-mail-transport.ts'
import { type LetterToPost, mayWrite, nextTurn, postLetter } from './post-letter.ts'

const TOKEN = 'svc_rst_canary00000000000000000000000000000000000000'
const RELAY_TOKEN = 'canary-relay-token'

describe('the outbox', () => {
  let plane: ControlPlaneDatabase
  let ours: TestAuthority
  const masterKey = randomBytes(32)
  const sealer = createSealer({ current: masterKey })
  const logged: string[] = []
  const log = jsonLog({ write: line => void logged.push(line) }, 'debug')
  const couriers: Courier[] = []
  before(async () => {
    plane = await controlPlaneDatabase()
    ours = testAuthority()
  })
  afterEach(async () => {
    await Promise.all(couriers.splice(0).map(courier => courier.stop()))
    await plane.database.rows('delete from mail_outbox')
  })
  after(() => plane.database.stop())

  const relayOf = (respond?: Respond, delayMs = 0): Promise<MailRelay> =>
    startMailRelay({ identity: ours.identity(), token: RELAY_TOKEN, delayMs, ...(respond && { respond }) })
  const wayTo = (relay: MailRelay): WebhookConfig => ({
    by: 'webhook',
    url: relay.url,
    token: RELAY_TOKEN,
    caFile: ours.file,
  })
  const courier = async (
    relay: MailRelay,
    more: Partial<ConstructorParameters<typeof Courier>[0]> = {},
  ): Promise<Courier> => {
    const made = new Courier({
      database: plane.database,
      transport: await openMailTransport(wayTo(relay)),
      sealer,
      consoleUrl: 'https://console.example.com',
      log,
      registry: new Registry(),
      pollMs: 20,
      ...more,
    })
    couriers.push(made)
    made.start()
    return made
  }
  const reset = (n = 1): LetterToPost => ({
    kind: 'password_reset',
    about: `usr_${n}`,
    recipient: `user${n}@example.com`,
    parameters: {},
    secret: { token: TOKEN },
    validSeconds: 3600,
  })
  const post = (letter: LetterToPost, database: Database = plane.database): Promise<void> =>
    database.transaction(sql => postLetter(sql, { sealer, wake: () => undefined }, letter))
  const rows = () =>
    plane.database.rows<{ state: string; attempts: number; error: string | null; text: string }>(
      'select state, attempts, last_error as error, o::text as text from mail_outbox o order by id',
    )
  const settled = async (): Promise<Awaited<ReturnType<typeof rows>>> => {
    for (;;) {
      const all = await rows()
      if (all.every(({ state }) => state !== 'waiting')) return all
      await sleep(10)
    }
  }
  /** The one letter after an attempt of it failed, with how long it waits now. */
  const failed = async (attempts: number): Promise<{ readonly seconds: number }> => {
    for (;;) {
      const row = await plane.database.row<{ seconds: number }>(
        `select extract(epoch from next_attempt_at - clock_timestamp())::float8 as seconds from mail_outbox
         where attempts = $1 and lease is null`,
        [attempts],
      )
      if (row !== undefined) return row
      await sleep(2)
    }
  }
  const beDue = () => plane.database.rows(`update mail_outbox set next_attempt_at = now() where state = 'waiting'`)

  it('keeps a letter with what it is about, or not at all, and sends it after the commit', async () => {
    const relay = await relayOf()
    await courier(relay)
    await assert.rejects(
      plane.database.transaction(async sql => {
        await postLetter(sql, { sealer, wake: () => undefined }, reset(1))
        throw new Error('it did not happen')
      }),
    )
    await post(reset(2))
    const letter = await relay.letter(({ to }) => to === 'user2@example.com')
    assert.ok(letter.text.includes(`https://console.example.com/reset-password/${TOKEN}`))
    assert.ok(letter.html.includes(`href="https://console.example.com/reset-password/${TOKEN}"`))
    await settled()
    assert.equal(relay.letters.length, 1)
  })

  it('holds nothing secret in clear while a letter waits, and nothing at all of it after', async () => {
    await post(reset())
    const [waiting] = await rows()
    assert.ok(!waiting!.text.includes('canary') && waiting!.text.includes('v1.'))
    await courier(await relayOf())
    const [sent] = await settled()
    assert.deepEqual([sent!.state, sent!.text.includes('v1.'), sent!.text.includes('canary')], ['sent', false, false])
  })

  it('tries again after a failure, later and later, and tells nobody what was in the letter', async () => {
    const waits = [8, 16, 32, 64, 128, 256, 300, 300]
    const relay = await relayOf(n => (n <= waits.length ? [500, 429, 400][n % 3] : undefined))
    await courier(relay, { random: () => 1 })
    await post(reset())
    for (const [n, wait] of waits.entries()) {
      const { seconds } = await failed(n + 1)
      // What is read is a moment later than what was written.
      assert.ok(seconds <= wait && seconds > wait - 3, `${seconds} s after ${n + 1}`)
      await beDue()
    }
    const [row] = await settled()
    assert.deepEqual([row!.state, row!.attempts, relay.letters.length], ['sent', waits.length + 1, 1])
    assert.ok(logged.some(line => line.includes('The mail relay answered 500')))
    assert.ok(logged.every(line => !/canary|svc_mgl_echo|user1@example/.test(line)))
  })

  it('waits at least half of that, whatever is drawn', async () => {
    await courier(await relayOf(() => 503), { random: () => 0 })
    await post(reset())
    const { seconds } = await failed(1)
    assert.ok(seconds <= 4 && seconds > 1, `${seconds} s`)
  })

  it('gives up what nobody needs any more, with what was secret in it', async () => {
    const relay = await relayOf(() => 503)
    await courier(relay)
    await post(reset())
    while ((await rows())[0]!.error === null) await sleep(5)
    await plane.database.rows(`update mail_outbox set expires_at = now(), next_attempt_at = now() - interval '1 s'`)
    const [row] = await settled()
    assert.deepEqual([row!.state, row!.text.includes('v1.')], ['given_up', false])
    assert.ok(logged.some(line => line.includes('A letter was given up')))
  })

  it('withdraws a letter that another one replaces, and sends none that is not wanted', async () => {
    await post(reset())
    await post({ ...reset(), secret: { token: 'svc_rst_second' } })
    await post({ ...reset(2), wanted: false })
    const relay = await relayOf()
    await courier(relay)
    const all = await settled()
    assert.deepEqual(all.map(({ state }) => state).toSorted(), ['sent', 'unwanted', 'withdrawn'])
    assert.ok(all.every(({ text }) => !text.includes('v1.')))
    assert.ok(relay.letters[0]!.text.includes('svc_rst_second') && relay.letters.length === 1)
  })

  it('lets one letter of a kind to one address go in a minute, whoever asks at the same moment', async () => {
    const other = plane.open()
    const asked = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        (n % 2 === 0 ? plane.database : other).transaction(sql => mayWrite(sql, 'magic_link', 'ada@example.com')),
      ),
    )
    assert.equal(asked.filter(Boolean).length, 1)
    assert.equal(await other.transaction(sql => mayWrite(sql, 'password_reset', 'ada@example.com')), true)
    const turns = await Promise.all(
      Array.from({ length: 4 }, (_, n) =>
        (n % 2 === 0 ? plane.database : other).transaction(sql => nextTurn(sql, 'invitation', 'ada@example.com')),
      ),
    )
    const sorted = turns.map(turn => turn.getTime()).toSorted((a, b) => a - b)
    for (const [n, turn] of sorted.entries()) if (n > 0) assert.equal(turn - sorted[n - 1]!, 60_000)
    await other.stop()
  })

  it('has each letter carried by one of many replicas, once', async () => {
    const many = sized(40, 400)
    const relay = await relayOf(undefined, 3)
    const others = [plane.open(), plane.open()]
    for (const database of [plane.database, ...others]) await courier(relay, { database })
    // A few at once: what is asked here is not how long a queue for connections may be.
    for (let n = 0; n < many; n += 5) await Promise.all([0, 1, 2, 3, 4].map(more => post(reset(n + more))))
    await settled()
    assert.equal(new Set(relay.letters.map(({ to }) => to)).size, many)
    assert.equal(relay.requests.length, many)
    await Promise.all(couriers.splice(0).map(each => each.stop()))
    await Promise.all(others.map(each => each.stop()))
  }).timeout(120_000)

  it('loses no letter with a replica that is killed while it sends, and nobody sends it at the same time', async () => {
    for (let round = 0; round < sized(2, 20); round++) {
      const relay = await relayOf(undefined, 300)
      const child = fork(new URL('../../testkit/courier-child.ts', import.meta.url), { stdio: 'inherit' })
      child.send({
        databaseUrl: plane.url('svc_api'),
        masterKey: masterKey.toString('base64'),
        mail: wayTo(relay),
      } satisfies CourierOrders)
      await post(reset(round))
      while (relay.requests.length === 0) await sleep(2)
      child.kill('SIGKILL')
      await once(child, 'exit')
      const survivor = plane.open()
      await courier(relay, { database: survivor })
      // It looks twenty times, and leaves alone what another has leased for longer than an attempt may take.
      await sleep(400)
      const [leased] = await plane.database.rows<{ attempts: number; seconds: number }>(
        'select attempts, extract(epoch from leased_until - now())::float8 as seconds from mail_outbox',
      )
      assert.equal(leased!.attempts, 1)
      assert.ok(leased!.seconds > 30, `leased for ${leased!.seconds} s`)
      await plane.database.rows('update mail_outbox set leased_until = now()')
      const [row] = await settled()
      assert.deepEqual([row!.state, row!.attempts], ['sent', 2])
      assert.equal(relay.requests.length, 2)
      assert.equal(new Set(relay.requests.map(({ headers }) => headers['idempotency-key'])).size, 1)
      assert.equal(relay.mostAtOnce(), 1)
      await Promise.all(couriers.splice(0).map(each => each.stop()))
      await survivor.stop()
      await plane.database.rows('delete from mail_outbox')
    }
  }).timeout(120_000)

  it('is not held up by letters that hang: each attempt has its end', async () => {
    const relay = await relayOf(undefined, 60_000)
    await courier(relay, { attemptMs: 100, log: silentLog })
    await Promise.all(Array.from({ length: 6 }, (_, n) => post(reset(n))))
    while ((await rows()).some(({ error }) => error === null)) await sleep(10)
    assert.ok((await rows()).every(({ error }) => error === 'The mail relay took too long'))
  })

  it('gives what is on its way back when it stops', async () => {
    const relay = await relayOf(undefined, 50)
    const one = await courier(relay)
    await post(reset())
    while (relay.requests.length === 0) await sleep(2)
    await one.stop()
    assert.deepEqual(
      (await rows()).map(({ state }) => state),
      ['sent'],
    )
  })
})
