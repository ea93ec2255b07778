import assert from 'node:assert/strict'
import fc, { type AsyncCommand } from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { callOf, Disable, type ModelAccount, modelAccount, modelSession } from '../../testkit/login-model.ts'
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
import { type ModelProcesses, modelProcesses, outcomeIn } from '../../testkit/model-processes.ts'
import type { Principal } from '../commands/call.ts'
import { requestPasswordReset } from '../commands/login/request-password-reset.ts'
import { completeReset, issueReset, previewReset } from '../commands/login/reset-password.ts'
import { signIn } from '../commands/login/sign-in.ts'

const FIRST = 'one red kite over the moor'
const INVALID = 'invalid_reset_token'

interface Link {
  readonly token: string
  readonly until: number
  readonly byMail: boolean
}

/** What is true of one account, in seconds of its own clock. */
interface Model {
  now: number
  password: string
  passwords: number
  disabled: boolean
  /** Its address was proved. */
  verified: boolean
  sessions: number
  /** Requests that were counted. */
  requests: number[]
  letterAt: number
  letterId: string | undefined
  link: Link | undefined
  old: string[]
}

/** An operator in a session. */
interface Administrator {
  readonly userId: string
  /** Of the session. */
  readonly token: string
}

interface Issued {
  readonly answer: Outcome
  readonly token: string | undefined
}

/** What the model does to the service. */
interface Resets {
  request(at: At, email: string): Promise<Outcome>
  issue(at: At, by: Administrator, email: string): Promise<Issued>
  look(at: At, token: string): Promise<Outcome>
  complete(at: At, token: string, password: string): Promise<Outcome>
  signIn(at: At, email: string, password: string): Promise<Outcome>
}

interface Real {
  readonly ground: ModelGround
  readonly resets: Resets
  readonly account: ModelAccount
  readonly administrator: Administrator
}

type Step = AsyncCommand<Model, Real>

const live = ({ link, now, disabled }: Model): Link | undefined =>
  link !== undefined && now < link.until && !disabled ? link : undefined
const end = (model: Model): void => {
  if (model.link !== undefined) model.old.push(model.link.token)
  model.link = undefined
}
const newPassword = (model: Model): string => `seven wet stones at pier ${++model.passwords}`
const tokenIn = (resetUrl: string): string | undefined => resetUrl.split('/').at(-1)
const principalOf = ({ userId }: Administrator): Principal => ({
  kind: 'session',
  subject: `user:${userId}`,
  userId,
  credentialId: 'ses_test',
  isOperator: true,
  role: undefined,
  scopes: undefined,
})

const byCommands = ({ login }: MailWorld): Resets => ({
  request: (at, email) => outcomeOf(requestPasswordReset(login[at], openCallOf(), email)),
  issue: async (at, by, email) => {
    let token: string | undefined
    const body = { email, admin_password: FIRST }
    const answer = await outcomeOf(
      issueReset(login[at], callOf(principalOf(by)), body).then(reply => {
        assert.ok(reply.body !== undefined && !Buffer.isBuffer(reply.body))
        token = tokenIn(reply.body.reset_url)
        return reply
      }),
    )
    return { answer, token }
  },
  look: (at, token) => outcomeOf(previewReset(login[at], openCallOf(), token)),
  complete: (at, token, password) =>
    outcomeOf(completeReset(login[at], openCallOf(), { token, new_password: password })),
  signIn: (at, email, password) => outcomeOf(signIn(login[at], openCallOf(), { email, password })),
})

const throughHttp = ({ ask, outcome }: ModelProcesses): Resets => ({
  request: (at, email) => outcome(at, 'requestPasswordReset', { body: { email } }),
  issue: async (at, { token }, email) => {
    const answer = await ask(at, 'issuePasswordReset', { body: { email, admin_password: FIRST } }, token)
    return { answer: outcomeIn(answer), token: answer.status === 201 ? tokenIn(answer.body.reset_url) : undefined }
  },
  look: (at, token) => outcome(at, 'previewPasswordReset', { body: { token } }),
  complete: (at, token, password) => outcome(at, 'completePasswordReset', { body: { token, new_password: password } }),
  signIn: (at, email, password) => outcome(at, 'signIn', { body: { email, password } }),
})

const complete = ({ resets }: Real, at: At, token: string, password: string) => resets.complete(at, token, password)
const issue = ({ resets, administrator, account }: Real, at: At) => resets.issue(at, administrator, account.email)
const completed = (model: Model, password: string): void => {
  if (model.link?.byMail === true) model.verified = true
  end(model)
  model.password = password
  model.sessions = 0
}
/** The model and the database agree on what is left. */
const assertState = async (model: Model, { ground, account }: Real): Promise<void> => {
  const row = await ground.database.row<{ sessions: number; verified: boolean }>(
    `select (select count(*)::int from sessions where user_id = $1) as sessions, email_verified_at is not null as verified
     from users where user_id = $1`,
    [account.userId],
  )
  assert.deepEqual(row, { sessions: model.sessions, verified: model.verified })
}

class Request implements Step {
  readonly at: At
  constructor(at: At) {
    this.at = at
  }
  check = (): boolean => true
  toString = (): string => `request at ${this.at}`
  async run(model: Model, { ground, resets, account: { email } }: Real): Promise<void> {
    assert.equal(await resets.request(this.at, email), 202)
    model.requests = model.requests.filter(time => model.now - time < 300)
    const counted = model.requests.length < 5
    if (counted) model.requests.push(model.now)
    const letter = await ground.waiting(email)
    if (!counted || model.now - model.letterAt < 60) {
      assert.equal(letter?.id, model.letterId)
      return
    }
    model.letterAt = model.now
    if (model.disabled) {
      // One that still waits is not sent either.
      assert.equal(letter, undefined)
      model.letterId = undefined
      return
    }
    assert.notEqual(letter?.id, model.letterId)
    end(model)
    model.letterId = letter!.id
    model.link = { token: letter!.secret['token']!, until: model.now + 3600, byMail: true }
  }
}

class Issue implements Step {
  readonly at: At
  constructor(at: At) {
    this.at = at
  }
  check = (): boolean => true
  toString = (): string => `an administrator issues one at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const { answer, token } = await issue(real, this.at)
    assert.equal(answer, model.disabled ? 'user_not_found' : 201)
    if (token === undefined) return
    end(model)
    model.link = { token, until: model.now + 86_400, byMail: false }
  }
}

class Complete implements Step {
  readonly at: At
  readonly which: number
  readonly looks: boolean
  constructor(at: At, which: number, looks: boolean) {
    this.at = at
    this.which = which
    this.looks = looks
  }
  check = (model: Readonly<Model>): boolean => model.link !== undefined || model.old.length > 0
  toString = (): string => `${this.looks ? 'look at' : 'complete'} ${this.which} at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const token = model.old[this.which] ?? model.link?.token ?? model.old[0]!
    const good = live(model)?.token === token
    if (this.looks) {
      const answer = await real.resets.look(this.at, token)
      assert.equal(answer, good ? 200 : INVALID)
      return
    }
    const password = newPassword(model)
    assert.equal(await complete(real, this.at, token, password), good ? 204 : INVALID)
    if (good) completed(model, password)
    await assertState(model, real)
  }
}

/** The link is used twice at the same moment, or while another takes its place. */
class Race implements Step {
  readonly against: 'complete' | 'issue'
  constructor(against: 'complete' | 'issue') {
    this.against = against
  }
  check = (model: Readonly<Model>): boolean => live(model) !== undefined
  toString = (): string => `complete and ${this.against} at the same moment, on two replicas`
  async run(model: Model, real: Real): Promise<void> {
    const { token } = model.link!
    const [one, two] = [newPassword(model), newPassword(model)]
    if (this.against === 'complete') {
      const answers = await Promise.all([complete(real, 0, token, one), complete(real, 1, token, two)])
      assert.deepEqual(answers.map(String).sort(), ['204', INVALID])
      completed(model, answers[0] === 204 ? one : two)
    } else {
      const [answer, issued] = await Promise.all([complete(real, 0, token, one), issue(real, 1)])
      assert.equal(issued.answer, 201)
      if (answer === 204) completed(model, one)
      else assert.equal(answer, INVALID)
      end(model)
      const kept = await real.resets.look(0, issued.token!)
      // Whoever sets a password voids what waits; one that is issued after that stands.
      assert.ok(kept === 200 || (kept === INVALID && answer === 204), String(kept))
      if (kept === 200) model.link = { token: issued.token!, until: model.now + 86_400, byMail: false }
    }
    await assertState(model, real)
  }
}

class SignIn implements Step {
  readonly at: At
  readonly raced: boolean
  constructor(at: At, raced: boolean) {
    this.at = at
    this.raced = raced
  }
  check = (model: Readonly<Model>): boolean => !this.raced || live(model) !== undefined
  toString = (): string => `sign in at ${this.at}${this.raced ? ' while a link is completed' : ''}`
  async run(model: Model, real: Real): Promise<void> {
    const { email } = real.account
    const enter = (password: string) => real.resets.signIn(this.at, email, password)
    if (!this.raced) {
      const answer = await enter(model.password)
      assert.equal(answer, model.disabled ? 'invalid_credentials' : 200)
      if (answer === 200) model.sessions++
      return
    }
    const password = newPassword(model)
    const [answer] = await Promise.all([
      complete(real, this.at === 0 ? 1 : 0, model.link!.token, password),
      enter(model.password),
    ])
    assert.equal(answer, 204)
    // Whether the old password came just before or too late: no session of it is left.
    completed(model, password)
    await assertState(model, real)
  }
}

const age = async ({ ground, account }: Real, seconds: number): Promise<void> => {
  await ground.pass(account.email, seconds)
  await ground.database.rows(
    `with f as (delete from sign_in_failures where account_key = sha256($3::text::bytea))
     update password_resets set expires_at = expires_at - make_interval(secs => $2) where user_id = $1`,
    [account.userId, seconds, account.email],
  )
}

const commands = () => {
  const at = fc.constantFrom<At>(0, 1)
  return [
    at.map(each => new Request(each)),
    at.map(each => new Request(each)),
    at.map(each => new Issue(each)),
    fc.tuple(at, fc.nat(2), fc.boolean()).map(([each, which, looks]) => new Complete(each, which, looks)),
    fc.tuple(at, fc.boolean()).map(([each, looks]) => new Complete(each, 99, looks)),
    fc.constantFrom<'complete' | 'issue'>('complete', 'issue').map(against => new Race(against)),
    fc.tuple(at, fc.boolean()).map(([each, raced]) => new SignIn(each, raced)),
    fc.boolean().map(disabled => new Disable<Model, Real>(disabled)),
    fc.constantFrom(40, 70, 310, 3700, 86_500).map(seconds => new Pass<Model, Real>(seconds, age)),
    fc.constantFrom(70, 310).map(seconds => new Pass<Model, Real>(seconds, age)),
  ]
}

const beginOn = (ground: ModelGround, resets: Resets) => async () => {
  const account = await modelAccount(ground, FIRST)
  const { userId } = await modelAccount(ground, FIRST, { isOperator: true })
  const administrator = { userId, token: (await modelSession(ground, userId)).token }
  const model: Model = {
    now: 0,
    password: FIRST,
    passwords: 0,
    disabled: false,
    verified: false,
    sessions: 0,
    requests: [],
    letterAt: -1e9,
    letterId: undefined,
    link: undefined,
    old: [],
  }
  return { model, real: { ground, resets, account, administrator } satisfies Real }
}

describe('links for a new password, against a model', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  it('do what the model says, whatever is asked in whichever order, on two replicas', async () => {
    const sequences = sized(200, 10_000)
    const steps = await runSequences<Model, Real>(commands(), beginOn(world, byCommands(world)), sequences, 7)
    assert.ok(steps > sequences)
  }).timeout(900_000)

  it('do so through HTTP, at two server processes', async () => {
    const processes = await modelProcesses()
    const sequences = sized(8, 30)
    const steps = await runSequences<Model, Real>(commands(), beginOn(processes, throughHttp(processes)), sequences, 7)
    assert.ok(steps > sequences)
  }).timeout(120_000)
})
