import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import fc, { type AsyncCommand } from 'fast-check'
import type { Role } from '../../lib/model/credential.ts'
import type { OperationId } from '../../testkit/api-client.ts'
import { bodyOf } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import {
  accountTokensOf,
  callOf,
  Disable,
  type ModelAccount,
  modelAccount,
  modelSession,
} from '../../testkit/login-model.ts'
import {
  type At,
  type MailWorld,
  type ModelGround,
  mailWorld,
  type Outcome,
  outcomeOf,
  Pass,
  runSequences,
} from '../../testkit/mail-model.ts'
import { type ModelProcesses, modelProcesses, outcomeIn } from '../../testkit/model-processes.ts'
import { invalidToken } from '../auth/authenticate/bearer.ts'
import { authorize } from '../auth/authorize.ts'
import type { Call, Principal } from '../commands/call.ts'
import { createToken } from '../commands/create-token.ts'
import { putMember } from '../commands/put-member.ts'
import { removeMember } from '../commands/remove-member.ts'
import { revokeToken } from '../commands/revoke-token.ts'

const HOUR = 3600
const RANK = { viewer: 0, developer: 1, admin: 2, owner: 3 } as const satisfies Record<Role, number>
const KINDS = ['personal', 'agent', 'api_key', 'session'] as const

/** An organization, `a` or `b`; with a project and an environment it may name. */
interface Place {
  readonly org: 'a' | 'b'
  readonly project?: string
  readonly env?: string
}
/** What agents’ tokens are asked for: in the words of the API, and as the model understands them. */
interface Reach {
  readonly scope: (ids: Readonly<Record<'a' | 'b', string>>) => string
  readonly within: Partial<Place>
  readonly most: Role
  readonly bound?: 'a'
  readonly refusal?: string
}
const REACHES: readonly Reach[] = [
  { scope: () => 'read', within: {}, most: 'viewer' },
  { scope: () => 'deploy', within: {}, most: 'developer', bound: 'a' },
  { scope: () => 'admin', within: {}, most: 'admin', bound: 'a' },
  { scope: ({ a }) => `org:${a}:admin`, within: { org: 'a' }, most: 'admin' },
  { scope: ({ b }) => `org:${b}:deploy`, within: { org: 'b' }, most: 'developer' },
  {
    scope: ({ a }) => `project:${a}/shop:deploy`,
    within: { org: 'a', project: 'shop' },
    most: 'developer',
    bound: 'a',
  },
  {
    scope: ({ a }) => `env:${a}/shop/main:admin`,
    within: { org: 'a', project: 'shop', env: 'main' },
    most: 'admin',
    bound: 'a',
  },
  { scope: ({ a }) => `project:${a}/shop:read`, within: {}, most: 'viewer', refusal: 'scope_organization_required' },
  { scope: ({ b }) => `org:${b}:read`, within: {}, most: 'viewer', bound: 'a', refusal: 'scope_organization_mismatch' },
]
const LIVES = {
  '30m': HOUR / 2,
  '1h': HOUR,
  '24h': 24 * HOUR,
  '7d': 168 * HOUR,
  '30d': 720 * HOUR,
  never: Infinity,
} as const
type Ttl = keyof typeof LIVES
const PLACES: readonly Place[] = [
  { org: 'a' },
  { org: 'a', project: 'shop' },
  { org: 'a', project: 'shop', env: 'main' },
  { org: 'a', project: 'shop', env: 'other' },
  { org: 'a', project: 'other' },
  { org: 'b' },
  { org: 'b', project: 'shop', env: 'main' },
]

interface Token {
  readonly id: string
  readonly text: string
  readonly reach: Reach | undefined
  readonly until: number
  revoked: boolean
}

/** What is true of one user, in seconds of their own clock. */
interface Model {
  now: number
  disabled: boolean
  readonly roles: Record<'a' | 'b', Role | undefined>
  readonly tokens: Token[]
}

/** Somebody in a session. */
interface Person extends ModelAccount {
  /** Of the session. */
  readonly token: string
}

/** A sequence's user, with their organizations and those's owner. */
interface Cast {
  readonly account: Person
  readonly owner: Person
  readonly ids: Readonly<Record<'a' | 'b', string>>
}

/** By which of their tokens the user does something; undefined: in their session. */
type Actor = string | undefined

/** What the model does to the service. */
interface Tokens {
  make(at: At, by: Actor, body: TokenBody): Promise<{ readonly answer: Outcome; readonly made?: Made }>
  /** How a use of a token by a role ends; undefined: there is nothing to call that would tell. */
  see(at: At, token: string, place: Place, needed: Role): Promise<Seen | undefined>
  revoke(at: At, by: Actor, id: string): Promise<Outcome>
  remove(at: At, org: 'a' | 'b'): Promise<Outcome>
  putMember(at: At, org: 'a' | 'b', role: Role): Promise<Outcome>
}

type TokenBody = Parameters<typeof createToken>[2]
type Seen = (typeof SEEN)[number]
interface Made {
  readonly id: string
  readonly token: string
}

interface Real extends Cast {
  readonly ground: ModelGround
  readonly tokens: Tokens
}

type Step = AsyncCommand<Model, Real>
const SEEN = ['yes', 'invalid_token', 'organization_not_found', 'forbidden', 'insufficient_scope'] as const

/** @throws AssertionError when a use ends in none of the ways in which one may */
const seenIn = (answer: Outcome): Seen => {
  const seen = SEEN.find(each => each === answer)
  assert.ok(seen !== undefined, String(answer))
  return seen
}

const sessionPrincipal = (userId: string, role: Role | undefined): Principal => ({
  kind: 'session',
  subject: `user:${userId}`,
  userId,
  credentialId: 'ses_test',
  isOperator: false,
  role,
  scopes: undefined,
})

const byCommands = (world: MailWorld, { account, owner, ids }: Cast): Tokens => {
  const { inviting } = world
  const find = accountTokensOf(world)
  const principalOf = async (at: At, by: Actor): Promise<Principal> => {
    if (by === undefined) return sessionPrincipal(account.userId, undefined)
    const principal = await find(at, by, ids.a)
    if (principal === undefined) throw invalidToken()
    return principal
  }
  const as = (at: At, by: Actor, act: (call: Call) => Promise<{ readonly status: number }>): Promise<Outcome> =>
    outcomeOf(principalOf(at, by).then(principal => act(callOf(principal))))
  const asOwner = (org: 'a' | 'b') =>
    callOf(sessionPrincipal(owner.userId, 'owner'), { organizationId: ids[org], target: { organizationId: ids[org] } })
  const member = (org: 'a' | 'b') => ({ organizationId: ids[org], subject: `user:${account.userId}` })
  return {
    make: async (at, by, body) => {
      let made: Made | undefined
      const answer = await as(at, by, async call => {
        const reply = await createToken(inviting[at], call, body)
        made = bodyOf(reply)
        return reply
      })
      return { answer, ...(made && { made }) }
    },
    see: async (at, token, { org, project: projectId, env: environmentId }, needed) => {
      const organizationId = ids[org]
      const principal = await find(at, token, organizationId)
      if (principal === undefined) return 'invalid_token'
      const target = { organizationId, projectId, environmentId }
      const judged = Promise.resolve().then(() => {
        authorize(principal, { role: needed, credentials: KINDS }, { target })
        return { status: 200 }
      })
      const answer = await outcomeOf(judged)
      return seenIn(answer === 200 ? 'yes' : answer)
    },
    revoke: (at, by, id) => as(at, by, call => revokeToken(inviting[at], call, id)),
    remove: (at, org) => outcomeOf(removeMember(inviting[at], asOwner(org), member(org))),
    putMember: (at, org, role) => outcomeOf(putMember(inviting[at], asOwner(org), { ...member(org), role })),
  }
}

/** Calls that change nothing, by what they are about and the role that they need: nothing of that is there. */
const CALLS: Readonly<Record<string, OperationId>> = {
  'org viewer': 'getOrganization',
  'org admin': 'listAuditEvents',
  'project viewer': 'getProject',
  'project admin': 'deleteProject',
  'env viewer': 'getEnvironment',
  'env developer': 'getConnection',
}
/** Who is told that got in. */
const IN: readonly Outcome[] = [200, 'project_not_found', 'environment_not_found']

const throughHttp = ({ ask, outcome }: ModelProcesses, { account, owner, ids }: Cast): Tokens => {
  const tokenOf = (by: Actor): string => by ?? account.token
  const member = (org: 'a' | 'b') => ({ org: ids[org], subject: `user:${account.userId}` })
  return {
    make: async (at, by, body) => {
      const answer = await ask(at, 'createToken', { body }, tokenOf(by))
      return { answer: outcomeIn(answer), ...(answer.status === 201 && { made: answer.body }) }
    },
    see: async (at, token, { org, project, env }, needed) => {
      const call = CALLS[`${env ? 'env' : project ? 'project' : 'org'} ${needed}`]
      if (call === undefined) return undefined
      const params = { org: ids[org], ...(project && { project }), ...(env && { env }) }
      const answer = await outcome(at, call, { params }, token)
      return seenIn(IN.includes(answer) ? 'yes' : answer)
    },
    revoke: (at, by, token) => outcome(at, 'revokeToken', { params: { token } }, tokenOf(by)),
    remove: (at, org) => outcome(at, 'removeMember', { params: member(org) }, owner.token),
    putMember: (at, org, role) => outcome(at, 'putMember', { params: member(org), body: { role } }, owner.token),
  }
}

const isGood = ({ now, disabled }: Model, token: Token): boolean => !disabled && !token.revoked && now < token.until

const expected = (model: Model, token: Token, place: Place, needed: Role): Seen => {
  if (!isGood(model, token)) return 'invalid_token'
  const { reach } = token
  const role = reach?.bound !== undefined && reach.bound !== place.org ? undefined : model.roles[place.org]
  if (role === undefined) return 'organization_not_found'
  if (RANK[role] < RANK[needed]) return 'forbidden'
  if (reach === undefined) return 'yes'
  const { org, project, env } = reach.within
  const holds =
    (org === undefined || org === place.org) &&
    (project === undefined || project === place.project) &&
    (env === undefined || env === place.env)
  return holds && RANK[needed] <= RANK[reach.most] ? 'yes' : 'insufficient_scope'
}

interface Wish {
  readonly reach: Reach | undefined
  readonly ttl: Ttl | undefined
  /** By a personal token; undefined: in a session. */
  readonly maker: number | undefined
}

/** Makes a token as somebody wishes it; the model learns of it. */
const make = async (model: Model, real: Real, at: At, wish: Wish): Promise<Outcome> => {
  const { reach, ttl, maker } = wish
  const makers = model.tokens.filter(each => each.reach === undefined && isGood(model, each))
  const by = maker === undefined ? undefined : makers[maker % Math.max(1, makers.length)]
  const body = {
    name: 'one',
    ...(ttl && { ttl }),
    ...(reach && { scopes: [reach.scope(real.ids)] }),
    ...(reach?.bound && { organization_id: real.ids[reach.bound] }),
  }
  const until = model.now + (ttl === undefined ? (reach === undefined ? Infinity : 8 * HOUR) : LIVES[ttl])
  const { answer, made } = await real.tokens.make(at, by?.text, body)
  if (made !== undefined) model.tokens.push({ id: made.id, text: made.token, reach, until, revoked: false })
  const named = [reach?.bound, reach?.within.org].filter(org => org !== undefined)
  const outlives = by !== undefined && by.until !== Infinity && until >= by.until
  if (reach?.refusal !== undefined) assert.equal(answer, reach.refusal)
  else if (outlives) assert.equal(answer, 'validation_failed')
  else if (named.every(org => model.roles[org] !== undefined)) assert.equal(answer, 201)
  else assert.equal(answer, 'organization_not_found')
  return answer
}

class Make implements Step {
  readonly at: At
  readonly wish: Wish
  constructor(at: At, wish: Wish) {
    this.at = at
    this.wish = wish
  }
  check = ({ disabled }: Readonly<Model>): boolean => !disabled
  toString = (): string => `make at ${this.at} ${JSON.stringify(this.wish)}`
  async run(model: Model, real: Real): Promise<void> {
    await make(model, real, this.at, this.wish)
  }
}

class Use implements Step {
  readonly at: At
  readonly which: number
  readonly needed: Role
  constructor(at: At, which: number, needed: Role) {
    this.at = at
    this.which = which
    this.needed = needed
  }
  check = ({ tokens }: Readonly<Model>): boolean => tokens.length > 0
  toString = (): string => `use ${this.which} at ${this.at} as ${this.needed}, everywhere`
  async run(model: Model, real: Real): Promise<void> {
    const token = model.tokens.at(-1 - (this.which % model.tokens.length))!
    const answers = await Promise.all(PLACES.map(place => real.tokens.see(this.at, token.text, place, this.needed)))
    assert.deepEqual(
      answers,
      PLACES.map((place, n) => answers[n] && expected(model, token, place, this.needed)),
    )
  }
}

class Revoke implements Step {
  readonly which: number
  readonly by: 'session' | 'itself'
  readonly twice: boolean
  constructor(which: number, by: 'session' | 'itself', twice: boolean) {
    this.which = which
    this.by = by
    this.twice = twice
  }
  check = ({ tokens, disabled }: Readonly<Model>): boolean => tokens.length > 0 && !disabled
  toString = (): string => `revoke ${this.which} by ${this.by}${this.twice ? ', on both replicas at once' : ''}`
  async run(model: Model, real: Real): Promise<void> {
    const token = model.tokens.at(-1 - (this.which % model.tokens.length))!
    const seen = await real.tokens.see(1, token.text, PLACES[0]!, 'viewer')
    assert.equal(seen !== 'invalid_token', isGood(model, token))
    const byItself = this.by === 'itself' && isGood(model, token)
    const revoke = (at: At) => real.tokens.revoke(at, byItself ? token.text : undefined, token.id)
    const answers = await Promise.all(this.twice ? [revoke(0), revoke(1)] : [revoke(0)])
    // By itself it may be over before the second is looked at.
    const late = byItself ? answers.filter(answer => answer === 'invalid_token').length : 0
    assert.ok(late < answers.length && answers.filter(answer => answer === 200).length === answers.length - late)
    token.revoked = true
    const events = await real.ground.database.rows(
      `select 1 from account_events where type = 'revoke_token' and metadata ->> 'token_id' = $1
       union all select 1 from audit_events where action = 'revoke_token' and resource_id = $1`,
      [token.id],
    )
    assert.ok(events.length <= 1, 'whoever comes second leaves no event, in either log')
    assert.equal(await real.tokens.see(1, token.text, PLACES[0]!, 'viewer'), 'invalid_token')
  }
}

/** An agent’s token ends no other. */
class RevokeAnother implements Step {
  check = (model: Readonly<Model>): boolean =>
    model.tokens.length > 1 && model.tokens.some(each => each.reach !== undefined && isGood(model, each))
  toString = (): string => 'an agent revokes another token'
  async run(model: Model, real: Real): Promise<void> {
    const agent = model.tokens.find(each => each.reach !== undefined && isGood(model, each))!
    const other = model.tokens.find(each => each !== agent)!
    assert.equal(await real.tokens.revoke(0, agent.text, other.id), 'credential_not_allowed')
  }
}

class Remove implements Step {
  readonly at: At
  readonly org: 'a' | 'b'
  readonly wish: Wish | undefined
  constructor(at: At, org: 'a' | 'b', wish: Wish | undefined) {
    this.at = at
    this.org = org
    this.wish = wish
  }
  check = ({ roles, disabled }: Readonly<Model>): boolean =>
    roles[this.org] !== undefined && !(disabled && this.wish !== undefined)
  toString = (): string =>
    `no member of ${this.org} any more, by ${this.at}${this.wish ? `, while ${JSON.stringify(this.wish)} is made` : ''}`
  async run(model: Model, real: Real): Promise<void> {
    const making = this.wish && this.#make(model, real, this.wish)
    assert.equal(await real.tokens.remove(this.at, this.org), 204)
    await making
    model.roles[this.org] = undefined
    for (const token of model.tokens) if (token.reach?.bound === this.org) token.revoked = true
    const bound = model.tokens.filter(({ reach }) => reach?.bound === this.org)
    const rows = await real.ground.database.rows('select 1 from tokens where id = any($1) and revoked_at is null', [
      bound.map(({ id }) => id),
    ])
    assert.deepEqual(rows, [], 'none that is bound there is left, not one that was made at this moment either')
  }
  /** Made, or refused because it came too late: both are right. */
  async #make(model: Model, real: Real, wish: Wish): Promise<void> {
    const { roles } = model
    const before = { ...roles }
    try {
      await make(model, real, this.at === 0 ? 1 : 0, { ...wish, maker: undefined })
    } catch (error) {
      roles[this.org] = undefined
      const named = [wish.reach?.bound, wish.reach?.within.org]
      if (!(error instanceof assert.AssertionError && error.actual === 'organization_not_found')) throw error
      assert.ok(named.includes(this.org))
    }
    Object.assign(roles, before)
  }
}

class BecomeRole implements Step {
  readonly org: 'a' | 'b'
  readonly role: Role
  constructor(org: 'a' | 'b', role: Role) {
    this.org = org
    this.role = role
  }
  check = (): boolean => true
  toString = (): string => `becomes ${this.role} of ${this.org}`
  async run(model: Model, real: Real): Promise<void> {
    assert.equal(await real.tokens.putMember(0, this.org, this.role), 200)
    model.roles[this.org] = this.role
  }
}

const age = async ({ ground, account }: Real, seconds: number): Promise<void> => {
  await ground.database.rows(
    `update tokens set created_at = created_at - make_interval(secs => $2), expires_at = expires_at - make_interval(secs => $2)
     where user_id = $1`,
    [account.userId, seconds],
  )
}

const commands = () => {
  const at = fc.constantFrom<At>(0, 1)
  const org = fc.constantFrom<'a' | 'b'>('a', 'a', 'b')
  const role = fc.constantFrom<Role>('viewer', 'developer', 'admin', 'owner')
  const wish = fc.record({
    reach: fc.option(fc.constantFrom(...REACHES), { nil: undefined, freq: 3 }),
    ttl: fc.option(fc.constantFrom(...(Object.keys(LIVES) as Ttl[])), { nil: undefined }),
    maker: fc.option(fc.nat(3), { nil: undefined }),
  })
  return [
    ...Array.from({ length: 3 }, () => fc.tuple(at, wish).map(([each, wanted]) => new Make(each, wanted))),
    ...Array.from({ length: 3 }, () =>
      fc.tuple(at, fc.nat(3), role).map(([each, which, needed]) => new Use(each, which, needed)),
    ),
    fc
      .tuple(fc.nat(3), fc.constantFrom<'session' | 'itself'>('session', 'itself'), fc.boolean())
      .map(([which, by, twice]) => new Revoke(which, by, twice)),
    fc.constant(new RevokeAnother()),
    fc.tuple(at, org).map(([each, id]) => new Remove(each, id, undefined)),
    fc.tuple(at, org, wish).map(([each, id, wanted]) => new Remove(each, id, wanted)),
    fc.tuple(org, role).map(([id, given]) => new BecomeRole(id, given)),
    fc.tuple(org, role).map(([id, given]) => new BecomeRole(id, given)),
    fc.boolean().map(disabled => new Disable<Model, Real>(disabled)),
    fc.constantFrom(1900, 5000, 30_000, 90_000, 700_000).map(seconds => new Pass<Model, Real>(seconds, age)),
  ]
}

const person = async (ground: ModelGround): Promise<Person> => {
  const account = await modelAccount(ground, 'one red kite over the moor')
  return { ...account, token: (await modelSession(ground, account.userId)).token }
}

const beginOn = async (ground: ModelGround, tokensOf: (cast: Cast) => Tokens) => {
  const owner = await person(ground)
  return async () => {
    const name = randomUUID().slice(0, 18)
    const ids = { a: `org-a-${name}`, b: `org-b-${name}` }
    const account = await person(ground)
    await ground.database.rows(
      `with o as (insert into organizations (organization_id, name) values ($1, 'A'), ($2, 'B'))
       insert into memberships (organization_id, user_id, role)
       values ($1, $3, 'owner'), ($2, $3, 'owner'), ($1, $4, 'admin'), ($2, $4, 'developer')`,
      [ids.a, ids.b, owner.userId, account.userId],
    )
    const model: Model = { now: 0, disabled: false, roles: { a: 'admin', b: 'developer' }, tokens: [] }
    const cast = { account, owner, ids }
    return { model, real: { ...cast, ground, tokens: tokensOf(cast) } satisfies Real }
  }
}

describe('account tokens, against a model', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  it('do what the model says, whatever is asked in whichever order, on two replicas', async () => {
    const sequences = sized(200, 10_000)
    const begin = await beginOn(world, cast => byCommands(world, cast))
    const steps = await runSequences<Model, Real>(commands(), begin, sequences, 8)
    assert.ok(steps > sequences)
  }).timeout(900_000)

  it('do so through HTTP, at two server processes', async () => {
    const processes = await modelProcesses()
    const sequences = sized(8, 50)
    const begin = await beginOn(processes, cast => throughHttp(processes, cast))
    const steps = await runSequences<Model, Real>(commands(), begin, sequences, 8)
    assert.ok(steps > sequences)
  }).timeout(120_000)
})
