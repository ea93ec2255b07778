import assert from 'node:assert/strict'
import fc, { type AsyncCommand } from 'fast-check'
import { nextSessionToken } from '../../lib/credentials/session-token.ts'
import { sized } from '../../testkit/full.ts'
import { callOf, Disable, type ModelAccount, modelAccount, sessionsOf } from '../../testkit/login-model.ts'
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
import { changePassword } from '../commands/login/change-password.ts'
import { revokeOtherSessions, revokeSession, signOut } from '../commands/login/end-sessions.ts'
import { signIn } from '../commands/login/sign-in.ts'

const [IDLE, ABSOLUTE, ROTATE, GRACE, TOUCH] = [7200, 43_200, 900, 60, 60]

interface Token {
  readonly text: string
  /** When the next one came; undefined: it is the one in force. */
  replacedAt?: number
}

interface Session {
  readonly id: string
  readonly begunAt: number
  readonly tokens: Token[]
  usedAt: number
  rotatedAt: number
}

/** What is true of one account, in seconds of its own clock. */
interface Model {
  now: number
  password: string
  passwords: number
  disabled: boolean
  /** Those that nobody ended; they may be over by themselves. */
  sessions: Session[]
  /** Tokens of those that were ended. */
  ended: string[]
  reuses: number
}

interface Change {
  readonly current_password: string
  readonly new_password: string
}

/** Whoever was let in by a token, and what they do with it. */
interface Visitor {
  readonly sessionId: string
  /** The token to go on with, where they were told one. */
  readonly next: string | undefined
  signOut(at: At): Promise<Outcome>
  end(at: At, sessionId: string): Promise<Outcome>
  /** How many were ended. */
  endOthers(at: At): Promise<number>
  changePassword(at: At, change: Change): Promise<{ readonly answer: Outcome; readonly next: string | undefined }>
}

/** What the model does to the service. */
interface Sessions {
  /** Derives the tokens that follow others. */
  readonly rotationKey: Buffer
  signIn(
    at: At,
    email: string,
    password: string,
  ): Promise<{ readonly answer: Outcome; readonly begun?: { readonly id: string; readonly token: string } }>
  find(at: At, token: string): Promise<Visitor | undefined>
  /** Waits until it is written when the account's sessions were last used: afterwards they may grow older. */
  usesAreWritten(userId: string): Promise<void>
}

interface Real {
  readonly ground: ModelGround
  readonly sessions: Sessions
  readonly account: ModelAccount
}

type Step = AsyncCommand<Model, Real>
const NEXT = 'Svc-Session-Token'

const byCommands = (world: MailWorld): Sessions => {
  const { login } = world
  const find = sessionsOf(world)
  return {
    rotationKey: login[0].settings.sessions.rotationKey,
    signIn: async (at, email, password) => {
      let begun: { id: string; token: string } | undefined
      const answer = await outcomeOf(
        signIn(login[at], openCallOf(), { email, password }).then(reply => {
          assert.ok(reply.body !== undefined && !Buffer.isBuffer(reply.body))
          begun = { id: reply.body.session.session_id, token: reply.body.token }
          return reply
        }),
      )
      return { answer, ...(begun && { begun }) }
    },
    find: async (foundAt, token) => {
      const found = await find(foundAt, token)
      if (found === undefined) return undefined
      const { principal, headers } = found
      return {
        sessionId: principal.credentialId,
        next: headers?.[NEXT],
        signOut: at => outcomeOf(signOut(login[at], callOf(principal))),
        end: (at, id) => outcomeOf(revokeSession(login[at], callOf(principal), id)),
        endOthers: async at => {
          const { body } = await revokeOtherSessions(login[at], callOf(principal))
          assert.ok(body !== undefined && !Buffer.isBuffer(body))
          return body.revoked
        },
        changePassword: async (at, change) => {
          let next: string | undefined
          const call = callOf(principal, {
            tell: told => {
              next = told[NEXT]
            },
          })
          return { answer: await outcomeOf(changePassword(login[at], call, change)), next }
        },
      }
    },
    // Before it lets anybody in.
    usesAreWritten: async () => undefined,
  }
}

const throughHttp = ({ ask, outcome, database, rotationKey, usesAreWritten }: ModelProcesses): Sessions => {
  const used = new Set<string>()
  return {
    rotationKey,
    signIn: async (at, email, password) => {
      const answer = await ask(at, 'signIn', { body: { email, password } })
      if (answer.status !== 200) return { answer: outcomeIn(answer) }
      const { token, session } = answer.body
      return { answer: 200, begun: { id: session.session_id, token } }
    },
    find: async (foundAt, token) => {
      const found = await ask(foundAt, 'getSession', {}, token)
      if (found.status !== 200) {
        assert.equal(found.body.code, 'invalid_token')
        return undefined
      }
      const { session_id: sessionId } = found.body.session
      used.add(sessionId)
      return {
        sessionId,
        next: found.headers.get(NEXT) ?? undefined,
        signOut: at => outcome(at, 'signOut', {}, token),
        end: (at, session) => outcome(at, 'revokeSession', { params: { session } }, token),
        endOthers: async at => (await ask(at, 'revokeOtherSessions', {}, token)).body.revoked,
        changePassword: async (at, body) => {
          const answer = await ask(at, 'changePassword', { body }, token)
          return { answer: outcomeIn(answer), next: answer.headers.get(NEXT) ?? undefined }
        },
      }
    },
    usesAreWritten: async userId => {
      await usesAreWritten()
      // Noting a use gives way to whoever holds the row, and the next use is noted: here there may be none.
      await database.rows(
        `update sessions set last_used_at = now()
         where user_id = $1 and id = any($2) and last_used_at < now() - make_interval(secs => $3)`,
        [userId, [...used], TOUCH],
      )
      used.clear()
    },
  }
}

const isOver = ({ now, disabled }: Model, session: Session): boolean =>
  disabled || now - session.usedAt >= IDLE || now - session.begunAt >= ABSOLUTE
const end = (model: Model, ...sessions: readonly Session[]): void => {
  model.ended.push(...sessions.flatMap(({ tokens }) => tokens.map(({ text }) => text)))
  model.sessions = model.sessions.filter(each => !sessions.includes(each))
}
const inForce = ({ tokens }: Session): Token => tokens.at(-1)!
const rotate = (model: Model, real: Real, session: Session): void => {
  const { text } = inForce(session)
  const { rotationKey } = real.sessions
  inForce(session).replacedAt = model.now
  session.tokens.push({ text: nextSessionToken(rotationKey, text, session.tokens.length - 1).token })
  session.rotatedAt = model.now
}

/** A token to be used: of one of the sessions, so many generations ago; or one of an ended session. */
interface Pick {
  readonly session: number
  readonly back: number
}
const pickedOf = (model: Model, { session: at, back }: Pick): { session: Session; token: Token } | undefined => {
  const session = model.sessions[at % Math.max(1, model.sessions.length)]
  return session && { session, token: session.tokens.at(-1 - Math.min(back, session.tokens.length - 1))! }
}

/** What the model says of a use; undefined: it is refused. Notes what the use changes. */
const use = (
  model: Model,
  real: Real,
  session: Session,
  token: Token,
): { readonly next: string | undefined } | undefined => {
  if (isOver(model, session)) return undefined
  const { replacedAt } = token
  if (replacedAt !== undefined && model.now - replacedAt >= GRACE) {
    model.reuses++
    end(model, session)
    return undefined
  }
  if (model.now - session.usedAt >= TOUCH) session.usedAt = model.now
  if (replacedAt === undefined && model.now - session.rotatedAt >= ROTATE) rotate(model, real, session)
  if (token.replacedAt === undefined) return { next: undefined }
  return { next: session.tokens[session.tokens.indexOf(token) + 1]!.text }
}
const assertSame = (
  found: Visitor | undefined,
  expected: { readonly next: string | undefined } | undefined,
  session: Session,
): void => {
  assert.equal(found?.sessionId, expected && session.id)
  assert.equal(found?.next, expected?.next)
}
const assertReuses = async (model: Model, { ground, account }: Real): Promise<void> => {
  const sql = `select count(*)::int as n from account_events where type = 'session_reuse' and user_id = $1`
  const row = await ground.database.row<{ n: number }>(sql, [account.userId])
  assert.equal(row?.n, model.reuses, 'a reuse is noted once')
}
/** Whoever acts in a session, if they may; judged by the model too. */
const actAs = async (model: Model, real: Real, at: At, pick: Pick) => {
  const picked = pickedOf(model, pick)
  if (picked === undefined) return undefined
  const { session, token } = picked
  const found = await real.sessions.find(at, token.text)
  assertSame(found, use(model, real, session, token), session)
  return found && { session, token, visitor: found }
}
const begin = async (model: Model, real: Real, at: At, password: string): Promise<Outcome> => {
  const { answer, begun } = await real.sessions.signIn(at, real.account.email, password)
  const { now } = model
  if (begun !== undefined)
    model.sessions.push({ id: begun.id, begunAt: now, tokens: [{ text: begun.token }], usedAt: now, rotatedAt: now })
  return answer
}

class Begin implements Step {
  readonly at: At
  readonly isRight: boolean
  constructor(at: At, isRight: boolean) {
    this.at = at
    this.isRight = isRight
  }
  check = (): boolean => true
  toString = (): string => `sign in at ${this.at}, ${this.isRight ? 'right' : 'wrong'}`
  async run(model: Model, real: Real): Promise<void> {
    const password = this.isRight ? model.password : 'another password of old'
    const answer = await begin(model, real, this.at, password)
    assert.equal(answer, this.isRight && !model.disabled ? 200 : 'invalid_credentials')
  }
}

class Use implements Step {
  readonly at: At
  readonly pick: Pick
  constructor(at: At, pick: Pick) {
    this.at = at
    this.pick = pick
  }
  check = ({ sessions }: Readonly<Model>): boolean => sessions.length > 0
  toString = (): string => `use ${JSON.stringify(this.pick)} at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    await actAs(model, real, this.at, this.pick)
    await assertReuses(model, real)
  }
}

class UseEnded implements Step {
  readonly at: At
  constructor(at: At) {
    this.at = at
  }
  check = ({ ended }: Readonly<Model>): boolean => ended.length > 0
  toString = (): string => `use whatever was ended, at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const found = await Promise.all(model.ended.slice(-6).map(token => real.sessions.find(this.at, token)))
    assert.ok(found.every(each => each === undefined))
  }
}

class UseTogether implements Step {
  readonly pick: Pick
  constructor(pick: Pick) {
    this.pick = pick
  }
  check = ({ sessions }: Readonly<Model>): boolean => sessions.length > 0
  toString = (): string => `four uses of ${JSON.stringify(this.pick)} at the same moment, on two replicas`
  async run(model: Model, real: Real): Promise<void> {
    const { session, token } = pickedOf(model, this.pick)!
    const found = await Promise.all(([0, 1, 0, 1] as const).map(at => real.sessions.find(at, token.text)))
    const expected = use(model, real, session, token)
    for (const each of found) assertSame(each, expected, session)
    await assertReuses(model, real)
  }
}

class SignOut implements Step {
  readonly at: At
  readonly pick: Pick
  readonly isRaced: boolean
  constructor(at: At, pick: Pick, isRaced: boolean) {
    this.at = at
    this.pick = pick
    this.isRaced = isRaced
  }
  check = ({ sessions }: Readonly<Model>): boolean => sessions.length > 0
  toString = (): string =>
    `sign ${JSON.stringify(this.pick)} out at ${this.at}${this.isRaced ? ', used meanwhile' : ''}`
  async run(model: Model, real: Real): Promise<void> {
    const actor = await actAs(model, real, this.at, this.pick)
    if (actor === undefined) return
    const using = this.isRaced ? real.sessions.find(this.at === 0 ? 1 : 0, inForce(actor.session).text) : undefined
    assert.equal(await actor.visitor.signOut(this.at), 204)
    await using
    end(model, actor.session)
    assert.equal(await real.sessions.find(0, inForce(actor.session).text), undefined)
  }
}

class EndOthers implements Step {
  readonly at: At
  readonly pick: Pick
  readonly one: number | undefined
  constructor(at: At, pick: Pick, one: number | undefined) {
    this.at = at
    this.pick = pick
    this.one = one
  }
  check = ({ sessions }: Readonly<Model>): boolean => sessions.length > 0
  toString = (): string => `${JSON.stringify(this.pick)} ends ${this.one ?? 'all others'} at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const actor = await actAs(model, real, this.at, this.pick)
    if (actor === undefined) return
    // What is over by itself is there until it is swept.
    if (this.one !== undefined) {
      const other = model.sessions[this.one % model.sessions.length]!
      const answer = await actor.visitor.end(this.at, other.id)
      if (!(isOver(model, other) && answer === 'session_not_found')) assert.equal(answer, 204)
      end(model, other)
      return
    }
    const others = model.sessions.filter(each => each !== actor.session)
    const ended = await actor.visitor.endOthers(this.at)
    assert.ok(ended <= others.length && ended >= others.filter(each => !isOver(model, each)).length, String(ended))
    end(model, ...others)
  }
}

class ChangePassword implements Step {
  readonly at: At
  readonly pick: Pick
  readonly isRight: boolean
  constructor(at: At, pick: Pick, isRight: boolean) {
    this.at = at
    this.pick = pick
    this.isRight = isRight
  }
  check = ({ sessions }: Readonly<Model>): boolean => sessions.length > 0
  toString = (): string => `${JSON.stringify(this.pick)} changes the password at ${this.at}, ${this.isRight}`
  async run(model: Model, real: Real): Promise<void> {
    const actor = await actAs(model, real, this.at, this.pick)
    if (actor === undefined) return
    const { session, token, visitor } = actor
    const change = {
      current_password: this.isRight ? model.password : 'no password of mine',
      new_password: `seven wet stones at pier ${++model.passwords}`,
    }
    const { answer, next } = await visitor.changePassword(this.at, change)
    assert.equal(answer, this.isRight ? 204 : 'invalid_credentials')
    if (!this.isRight) return
    model.password = change.new_password
    end(model, ...model.sessions.filter(each => each !== session))
    if (token.replacedAt === undefined) rotate(model, real, session)
    assert.equal(next, session.tokens[session.tokens.indexOf(token) + 1]!.text)
  }
}

/** Whoever signs in with the old password, or changes it too, while it is changed: of all that at most one session is left. */
class ChangeRace implements Step {
  readonly pick: Pick
  readonly other: number | 'sign-in'
  constructor(pick: Pick, other: number | 'sign-in') {
    this.pick = pick
    this.other = other
  }
  check = ({ sessions, disabled }: Readonly<Model>): boolean => sessions.length > 0 && !disabled
  toString = (): string => `${JSON.stringify(this.pick)} changes the password against ${this.other}`
  async run(model: Model, real: Real): Promise<void> {
    const one = await actAs(model, real, 0, { ...this.pick, back: 0 })
    if (one === undefined) return
    const two = this.other === 'sign-in' ? undefined : await actAs(model, real, 1, { session: this.other, back: 0 })
    if (two === undefined && this.other !== 'sign-in') return
    const old = model.password
    const change = async (at: At, actor: NonNullable<typeof one>, password: string) =>
      (await actor.visitor.changePassword(at, { current_password: old, new_password: password })).answer
    const [first, second] = [
      `nine dry logs at mill ${++model.passwords}`,
      `four grey mugs on shelf ${++model.passwords}`,
    ]
    const before = model.sessions.length
    const answers = await Promise.all([
      change(0, one, first),
      two === undefined ? begin(model, real, 1, old) : change(1, two, second),
    ])
    if (two === undefined) {
      assert.equal(answers[0], 204)
      assert.ok([200, 'invalid_credentials'].includes(answers[1]), String(answers[1]))
      assert.equal(model.sessions.length, before + (answers[1] === 200 ? 1 : 0))
    } else {
      // Of another session, it may have ended before the second was looked at.
      const refusals = one.session === two.session ? ['invalid_credentials'] : ['invalid_credentials', 'invalid_token']
      const [won, lost = ''] = answers.map(String).sort()
      assert.ok(won === '204' && refusals.includes(lost), answers.join())
    }
    const winner = answers[0] === 204 ? one : two!
    model.password = answers[0] === 204 ? first : second
    end(model, ...model.sessions.filter(each => each !== winner.session))
    if (winner.token.replacedAt === undefined) rotate(model, real, winner.session)
    for (const token of model.ended.slice(-2)) assert.equal(await real.sessions.find(0, token), undefined)
  }
}

const age = async ({ ground, sessions, account }: Real, seconds: number): Promise<void> => {
  await sessions.usesAreWritten(account.userId)
  await ground.database.rows(
    `with s as (update sessions set created_at = created_at - make_interval(secs => $2), last_used_at = last_used_at - make_interval(secs => $2),
         rotated_at = rotated_at - make_interval(secs => $2), authenticated_at = authenticated_at - make_interval(secs => $2)
       where user_id = $1 returning id)
     update session_tokens t set replaced_at = replaced_at - make_interval(secs => $2) from s where t.session_id = s.id`,
    [account.userId, seconds],
  )
}

const commands = () => {
  const at = fc.constantFrom<At>(0, 1)
  const pick = fc.record({ session: fc.nat(3), back: fc.constantFrom(0, 0, 0, 1, 2) })
  return [
    at.map(each => new Begin(each, true)),
    at.map(each => new Begin(each, true)),
    at.map(each => new Begin(each, false)),
    fc.tuple(at, pick).map(([each, picked]) => new Use(each, picked)),
    fc.tuple(at, pick).map(([each, picked]) => new Use(each, picked)),
    pick.map(picked => new UseTogether(picked)),
    pick.map(picked => new UseTogether(picked)),
    at.map(each => new UseEnded(each)),
    fc.tuple(at, pick, fc.boolean()).map(([each, picked, raced]) => new SignOut(each, picked, raced)),
    fc
      .tuple(at, pick, fc.option(fc.nat(3), { nil: undefined }))
      .map(([each, picked, one]) => new EndOthers(each, picked, one)),
    fc.tuple(at, pick, fc.boolean()).map(([each, picked, right]) => new ChangePassword(each, picked, right)),
    fc
      .tuple(pick, fc.oneof(fc.nat(3), fc.constant<'sign-in'>('sign-in')))
      .map(([picked, other]) => new ChangeRace(picked, other)),
    fc.boolean().map(disabled => new Disable<Model, Real>(disabled)),
    // No sum of a few of them comes just below a limit.
    ...Array.from({ length: 3 }, () =>
      fc.constantFrom(40, 70, 950, 950, 3700, 7300, 43_300).map(s => new Pass<Model, Real>(s, age)),
    ),
  ]
}

const beginOn = (ground: ModelGround, sessionsOfOne: () => Sessions) => async () => {
  const password = 'one red kite over the moor'
  const account = await modelAccount(ground, password)
  const model: Model = { now: 0, password, passwords: 0, disabled: false, sessions: [], ended: [], reuses: 0 }
  const real: Real = { ground, account, sessions: sessionsOfOne() }
  await begin(model, real, 0, password)
  return { model, real }
}

describe('sessions, against a model', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  it('do what the model says, whatever is asked in whichever order, on two replicas', async () => {
    const sequences = sized(300, 10_000)
    const all = byCommands(world)
    const steps = await runSequences<Model, Real>(
      commands(),
      beginOn(world, () => all),
      sequences,
      8,
    )
    assert.ok(steps > sequences)
  }).timeout(900_000)

  it('do so through HTTP, at two server processes', async () => {
    const processes = await modelProcesses()
    const sequences = sized(8, 30)
    const steps = await runSequences<Model, Real>(
      commands(),
      beginOn(processes, () => throughHttp(processes)),
      sequences,
      8,
    )
    assert.ok(steps > sequences)
  }).timeout(120_000)
})
