import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { residentMib } from '../../bench/process-cost.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiProcess, type ProcessPlace, processPlace, startApiProcess } from '../../testkit/api-process.ts'
import { sized } from '../../testkit/full.ts'
import { passwordAccounts, TEST_PASSWORD } from '../../testkit/sign-in.ts'
import { floodSignIns } from '../../testkit/sign-in-flood.ts'

/** Far above what it takes, far below what a request each that is kept would take. */
const MOST_MIB = 600
/** What a good user is told to wait at most, all Retry-After together. */
const MOST_WAITED_SECONDS = 2
const COUNTED = `select coalesce(sum(cardinality(hits)), 0)::int as count from attempts where bucket = 'sign-in'`

describe('the login while passwords are guessed from everywhere', function () {
  this.timeout(180_000)
  let place: ProcessPlace
  let server: ApiProcess
  let good: readonly string[]
  let guessed: readonly string[]
  before(async () => {
    place = await processPlace({ SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' })
    server = await startApiProcess(place)
    const emails = await passwordAccounts(place.plane, 40)
    good = emails.slice(0, 5)
    guessed = emails.slice(5)
    for (const [n, email] of good.entries()) assert.equal((await signIn(email, placeOf(n))).status, 200)
  })
  after(async () => {
    await server.stop()
    await place.plane.database.stop()
  })

  const placeOf = (n: number): string => `203.0.113.${n}`
  const signIn = (email: string, address: string, password = TEST_PASSWORD) =>
    new ApiClient(server.url).call('signIn', {
      ...{ body: { email, password }, headers: { 'X-Forwarded-For': address } },
      patient: false,
    })

  const attempts = async (): Promise<number> =>
    (await place.plane.database.transaction(sql => sql.row<{ count: number }>(COUNTED)))?.count ?? 0

  it('lets in who signed in from there before, past a crowd of strangers none of whom has failed', async () => {
    for (let round = 0; round < sized(2, 10); round++) {
      const crowd = Array.from({ length: 150 }, (_, n) =>
        signIn(`${n}@example.com`, `198.18.${round}.${n}`, 'wrong horse battery'),
      )
      const entered = await signIn(good[0] ?? '', placeOf(0))
      assert.equal(entered.status, 200, entered.text)
      const statuses = (await Promise.all(crowd)).map(({ status }) => status)
      assert.deepEqual([...new Set(statuses)].sort(), [401, 503])
    }
  })

  it('lets in a stranger who was turned away and comes again as told, past a crowd that comes for the first time', async () => {
    let addresses = 0
    const crowd = (): Promise<unknown> =>
      Promise.all(
        Array.from({ length: 200 }, () => {
          const n = addresses++
          return signIn(`new-${n}@example.com`, `198.19.${n >> 8}.${n & 255}`, 'wrong horse battery')
        }),
      )
    let strangers = 0
    /** On a machine with nothing else to do some get in before the crowd is there: then another one comes. */
    const turnedAway = async (email: string) => {
      for (;;) {
        const address = `192.0.2.${strangers++}`
        assert.ok(strangers < 100, 'nobody is ever turned away')
        const first = crowd()
        const refused = await signIn(email, address)
        if (refused.status !== 200) return { address, first, refused }
        await first
      }
    }
    for (let round = 0; round < sized(1, 5); round++) {
      const email = good[round] ?? ''
      const { address, first, refused } = await turnedAway(email)
      // Nothing tells them apart from the crowd yet.
      assert.deepEqual([refused.status, refused.body.code], [503, 'login_busy'], refused.text)
      assert.equal(refused.headers.get('retry-after'), '1')
      await first
      await sleep(1000)
      const second = crowd()
      const entered = await signIn(email, address)
      assert.equal(entered.status, 200, entered.text)
      await second
    }
  })

  it('answers a flood with refusals alone, lets good users in meanwhile, and keeps nothing of it', async () => {
    const seconds = sized(3, 30)
    const before = await attempts()
    const answered = floodSignIns({ url: server.url, perSecond: 150, seconds, addresses: 400, emails: guessed })
    let most = 0
    for (const [n, email] of good.entries()) {
      // Nobody goes before them: they are told to come again where the machine is so busy with all else that one hash takes seconds.
      let waited = 0
      for (;;) {
        const answer = await signIn(email, placeOf(n))
        most = Math.max(most, residentMib(server.pid))
        if (answer.status === 200) break
        assert.equal(answer.status, 503, answer.text)
        const wait = Number(answer.headers.get('retry-after'))
        waited += wait
        assert.ok(waited <= MOST_WAITED_SECONDS, `${email} was told to wait for ${waited} s in all`)
        await sleep(1000 * wait)
      }
    }
    most = Math.max(most, residentMib(server.pid))
    const answers = await answered
    assert.deepEqual(
      Object.keys(answers).filter(each => !['401', '429', '503'].includes(each)),
      [],
      JSON.stringify(answers),
    )
    assert.ok(most < MOST_MIB, `${most} MiB`)
    // Of whoever is turned away nothing is written, not even the attempt.
    const written = (await attempts()) - before
    const sent = Object.values(answers).reduce((sum, count) => sum + count, 0)
    assert.ok(written < sent, `${written} of ${sent} were written`)
  })
})
