import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import fc, { type AsyncCommand } from 'fast-check'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { bodyOf } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import { modelSession } from '../../testkit/login-model.ts'
import {
  type At,
  type MailWorld,
  type ModelGround,
  mailWorld,
  type Outcome,
  openCallOf,
  outcomeOf,
  Pass,
  runSequences,
} from '../../testkit/mail-model.ts'
import { type ModelProcesses, modelProcesses } from '../../testkit/model-processes.ts'
import type { Call } from '../commands/call.ts'
import { approveDevice } from '../commands/device/approve-device.ts'
import { denyDevice } from '../commands/device/deny-device.ts'
import { pollDeviceToken } from '../commands/device/poll-device-token.ts'
import { requestDeviceCode } from '../commands/device/request-device-code.ts'
import { DEVICE_GRANT, type DeviceCodeRecord } from '../contract/device-flow.ts'

interface Device {
  readonly codes: DeviceCodeRecord
  readonly until: number
  state: 'pending' | 'approved' | 'denied' | 'redeemed'
  /** Who approved, 0 or 1. */
  by: number | undefined
  polledAt: number
  interval: number
  redeemedAt: number
}

/** What is true of one agent and two people, in seconds of their own clock. */
interface Model {
  now: number
  device: Device | undefined
  /** When each person missed. */
  misses: [number[], number[]]
  tokens: number
}

interface Person {
  readonly userId: string
  readonly sessionId: string
  /** Of the session. */
  readonly token: string
}

/** What the model does to the service. */
interface DeviceFlow {
  begin(at: At): Promise<DeviceCodeRecord>
  poll(at: At, deviceCode: string): Promise<Outcome>
  decide(what: 'approve' | 'deny', at: At, who: Person, userCode: string): Promise<Outcome>
}

interface Real {
  readonly ground: ModelGround
  readonly flow: DeviceFlow
  readonly people: readonly [Person, Person]
}

type Step = AsyncCommand<Model, Real>
const NOT_FOUND = 'device_request_not_found'

const recent = (times: readonly number[], now: number): number[] => times.filter(time => now - time < 300)
const isOpen = ({ device, now }: Model): boolean => device !== undefined && now < device.until

const callOf = ({ userId, sessionId }: Person): Call => {
  const principal = {
    kind: 'session' as const,
    subject: `user:${userId}`,
    userId,
    credentialId: sessionId,
    isOperator: false,
    role: undefined,
    scopes: undefined,
  }
  return { ...openCallOf(), principal, pathParams: {}, idempotencyKey: undefined, contentHash: Buffer.alloc(0) }
}

const ASKED = { client_name: 'model' }
const grantOf = (user_code: string) => ({ user_code, scopes: ['read'] })
const pollOf = (device_code: string) => ({ grant_type: DEVICE_GRANT, device_code }) as const

const byCommands = ({ login, inviting }: MailWorld): DeviceFlow => ({
  begin: async at => bodyOf(await requestDeviceCode(login[at], openCallOf(), ASKED)),
  poll: (at, deviceCode) =>
    outcomeOf(pollDeviceToken(inviting[at], { ...openCallOf(), clientKey: 'device' }, pollOf(deviceCode))),
  decide: (what, at, who, user_code) =>
    what === 'approve'
      ? outcomeOf(approveDevice(login[at], callOf(who), grantOf(user_code)))
      : outcomeOf(denyDevice(login[at], callOf(who), { user_code })),
})

/** A token is told again at the address that fetched it. */
const addressOf = (deviceCode: string) => ({
  'X-Forwarded-For': `10.${createHash('sha256').update(deviceCode).digest().subarray(0, 3).join('.')}`,
})

const throughHttp = ({ ask, outcome }: ModelProcesses): DeviceFlow => ({
  begin: async at => (await ask(at, 'requestDeviceCode', { body: ASKED })).body,
  poll: (at, deviceCode) =>
    outcome(at, 'pollDeviceToken', { body: pollOf(deviceCode), headers: addressOf(deviceCode) }),
  decide: (what, at, { token }, user_code) =>
    what === 'approve'
      ? outcome(at, 'approveDevice', { body: grantOf(user_code) }, token)
      : outcome(at, 'denyDevice', { body: { user_code } }, token),
})

const poll = ({ flow }: Real, at: At, { codes }: Device) => flow.poll(at, codes.device_code)
const decide = ({ flow, people }: Real, what: 'approve' | 'deny', at: At, who: At, userCode: string) =>
  flow.decide(what, at, people[who], userCode)

/** What a poll comes to, and what it does to the model. */
const judgePoll = (model: Model): number | string => {
  const device = model.device!
  if (device.state === 'redeemed') return model.now - device.redeemedAt < 600 ? 200 : 'invalid_grant'
  const soon = model.now - device.polledAt < device.interval - 0.5
  device.polledAt = model.now
  if (soon && device.state !== 'denied') device.interval += 5
  if (!isOpen(model)) return 'expired_token'
  if (device.state === 'denied') return 'access_denied'
  if (soon) return 'slow_down'
  if (device.state === 'pending') return 'authorization_pending'
  device.state = 'redeemed'
  device.redeemedAt = model.now
  model.tokens++
  return 200
}

/** A look at a code: undefined when it finds what this person may decide. */
const judgeLook = (model: Model, who: At, isRight: boolean): string | undefined => {
  model.misses[who] = recent(model.misses[who], model.now)
  if (model.misses[who].length >= 5) return 'rate_limited'
  const device = model.device
  const sees =
    isRight &&
    device !== undefined &&
    isOpen(model) &&
    (device.state === 'pending' || (device.by === who && device.state !== 'denied'))
  if (sees) return undefined
  model.misses[who].push(model.now)
  return NOT_FOUND
}

const judgeApprove = (model: Model, who: At, isRight: boolean): number | string => {
  const refused = judgeLook(model, who, isRight)
  if (refused !== undefined) return refused
  const device = model.device!
  if (device.state === 'pending') {
    device.state = 'approved'
    device.by = who
  }
  return 200
}

const judgeDeny = (model: Model, who: At, isRight: boolean): number | string => {
  const refused = judgeLook(model, who, isRight)
  if (refused !== undefined) return refused
  const device = model.device!
  if (device.state === 'redeemed') return NOT_FOUND
  device.state = 'denied'
  return 204
}

class Begin implements Step {
  readonly at: At
  constructor(at: At) {
    this.at = at
  }
  check = (): boolean => true
  toString = (): string => `begin at ${this.at}`
  async run(model: Model, { flow }: Real): Promise<void> {
    const codes = await flow.begin(this.at)
    model.device = {
      codes,
      until: model.now + 600,
      state: 'pending',
      by: undefined,
      polledAt: -1e9,
      interval: 5,
      redeemedAt: -1e9,
    }
  }
}

abstract class WithDevice implements Step {
  check = (model: Readonly<Model>): boolean => model.device !== undefined
  abstract run(model: Model, real: Real): Promise<void>
}

class Poll extends WithDevice {
  readonly at: At
  constructor(at: At) {
    super()
    this.at = at
  }
  override toString = (): string => `poll at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const answer = await poll(real, this.at, model.device!)
    assert.equal(answer, judgePoll(model))
  }
}

class Decide extends WithDevice {
  readonly at: At
  readonly who: At
  readonly what: 'approve' | 'deny'
  readonly isRight: boolean
  constructor(at: At, who: At, what: 'approve' | 'deny', isRight: boolean) {
    super()
    this.at = at
    this.who = who
    this.what = what
    this.isRight = isRight
  }
  override toString = (): string => `${this.who} ${this.what}s${this.isRight ? '' : ' by a wrong code'} at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const code = this.isRight ? model.device!.codes.user_code : 'BBBB-BBBB'
    const judge = this.what === 'approve' ? judgeApprove : judgeDeny
    assert.equal(await decide(real, this.what, this.at, this.who, code), judge(model, this.who, this.isRight))
  }
}

class PollsAtOnce extends WithDevice {
  override toString = (): string => 'four polls at once, on two replicas'
  async run(model: Model, real: Real): Promise<void> {
    const answers = await Promise.all(([0, 1, 0, 1] as const).map(at => poll(real, at, model.device!)))
    // Whichever comes first gets what a poll gets; the others come too soon, or after it.
    const expected = answers.map(() => judgePoll(model))
    assert.deepEqual(answers.map(String).sort(), expected.map(String).sort())
  }
}

class DecisionsAtOnce extends WithDevice {
  override toString = (): string => 'both approve at once, on two replicas'
  override check = (model: Readonly<Model>): boolean =>
    model.device?.state === 'pending' && isOpen(model) && model.misses.every(each => recent(each, model.now).length < 4)
  async run(model: Model, real: Real): Promise<void> {
    const code = model.device!.codes.user_code
    const answers = await Promise.all([decide(real, 'approve', 0, 0, code), decide(real, 'approve', 1, 1, code)])
    assert.deepEqual(answers.map(String).sort(), ['200', NOT_FOUND])
    const winner = answers[0] === 200 ? 0 : 1
    model.device!.state = 'approved'
    model.device!.by = winner
    // Who came second looked before or after the decision: the first is no miss.
    const loser = winner === 0 ? 1 : 0
    const counted = await real.ground.database.row<{ n: number }>(
      `select coalesce(cardinality(array(select h from unnest(hits) h where h > now() - interval '300 s')), 0)::int as n
       from attempts where bucket = 'device-misses' and key = sha256($1::text::bytea)`,
      [real.people[loser].sessionId],
    )
    const known = recent(model.misses[loser], model.now)
    assert.ok([known.length, known.length + 1].includes(counted?.n ?? 0), String(counted?.n))
    if ((counted?.n ?? 0) > known.length) known.push(model.now)
    model.misses[loser] = known
  }
}

class PollAndDeny extends WithDevice {
  override toString = (): string => 'the token is fetched and taken back at once, on two replicas'
  override check = (model: Readonly<Model>): boolean => {
    const { device, now } = model
    if (device?.state !== 'approved' || !isOpen(model) || now - device.polledAt < device.interval) return false
    return recent(model.misses[device.by as At], now).length < 4
  }
  async run(model: Model, real: Real): Promise<void> {
    const device = model.device!
    const [polled, denied] = await Promise.all([
      poll(real, 0, device),
      decide(real, 'deny', 1, device.by as At, device.codes.user_code),
    ])
    device.polledAt = model.now
    const outcome = `${polled} ${denied}`
    assert.ok([`200 ${NOT_FOUND}`, 'access_denied 204'].includes(outcome), outcome)
    device.state = polled === 200 ? 'redeemed' : 'denied'
    if (polled !== 200) return
    device.redeemedAt = model.now
    model.tokens++
  }
}

const age = async ({ ground, people }: Real, seconds: number, model: Model): Promise<void> => {
  await ground.database.rows(
    `with a as (update attempts set hits = array(select h - make_interval(secs => $1) from unnest(hits) h order by h)
       where bucket = 'device-misses' and key = any (select sha256(s::bytea) from unnest($2::text[]) s))
     update device_requests set polled_at = polled_at - make_interval(secs => $1), expires_at = expires_at - make_interval(secs => $1),
       told_until = told_until - make_interval(secs => $1)
     where device_digest = sha256($3::text::bytea)`,
    [seconds, people.map(each => each.sessionId), model.device?.codes.device_code ?? ''],
  )
}

class CountTokens implements Step {
  check = (): boolean => true
  toString = (): string => 'tokens are counted'
  async run(model: Model, { ground, people }: Real): Promise<void> {
    const row = await ground.database.row<{ n: number }>(
      'select count(*)::int as n from tokens where user_id = any ($1)',
      [people.map(each => each.userId)],
    )
    assert.equal(row?.n, model.tokens)
  }
}

const commands = () => {
  const at = fc.constantFrom<At>(0, 1)
  const what = fc.constantFrom<'approve' | 'deny'>('approve', 'approve', 'deny')
  const isRight = fc.constantFrom(true, true, true, false)
  return [
    at.map(each => new Begin(each)),
    at.map(each => new Poll(each)),
    at.map(each => new Poll(each)),
    fc.tuple(at, at, what, isRight).map(([where, who, act, right]) => new Decide(where, who, act, right)),
    fc.tuple(at, at, what, isRight).map(([where, who, act, right]) => new Decide(where, who, act, right)),
    fc.constant(new PollsAtOnce()),
    fc.constant(new DecisionsAtOnce()),
    fc.constant(new PollAndDeny()),
    fc.constant(new CountTokens()),
    fc.constantFrom(3, 6, 11, 301, 601).map(seconds => new Pass(seconds, age)),
  ]
}

const person = async (ground: ModelGround): Promise<Person> => {
  const userId = newId('usr')
  const values = [userId, `${randomUUID()}@example.com`]
  await ground.database.rows(`insert into users (user_id, email, name) values ($1, $2, 'Ada')`, values)
  const { id, token } = await modelSession(ground, userId)
  return { userId, sessionId: id, token }
}

const beginOn = (ground: ModelGround, flow: DeviceFlow) => async () => ({
  model: { now: 0, device: undefined, misses: [[], []], tokens: 0 } as Model,
  real: { ground, flow, people: [await person(ground), await person(ground)] as const },
})

describe('the device flow, against a model', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  it('does what the model says, whatever is asked in whichever order, on two replicas', async () => {
    const sequences = sized(300, 10_000)
    const steps = await runSequences(commands(), beginOn(world, byCommands(world)), sequences, 6)
    assert.ok(steps > sequences)
  }).timeout(900_000)

  it('does so through HTTP, at two server processes', async () => {
    const processes = await modelProcesses()
    const sequences = sized(8, 50)
    // Longer than where there are thousands: what comes before a device began does nothing.
    const steps = await runSequences(commands(), beginOn(processes, throughHttp(processes)), sequences, 16)
    assert.ok(steps > sequences)
  }).timeout(120_000)
})
