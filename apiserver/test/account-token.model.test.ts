import assert from 'node:assert/strict'
import fc, { type AsyncCommand } from 'fast-check'
import type { Role } from '../../lib/model/credential.ts'
import { bodyOf } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import {
  type At,
  accountTokensOf,
  callOf,
  Disable,
  type ModelAccount,
  modelAccount,
} from '../../testkit/login-model.ts'
import { type MailWorld, mailWorld, outcomeOf, Pass, runSequences } from '../../testkit/mail-model.ts'
import { authorize } from '../auth/authorize.ts'
import type { Principal } from '../commands/call.ts'
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

interface Real {
  readonly world: MailWorld
  readonly account: ModelAccount
  readonly owner: Principal
  readonly ids: Readonly<Record<'a' | 'b', string>>
  readonly find: (at: At, token: string, org: string) => Promise<Principal | undefined>
}

type Step = AsyncCommand<Model, Real>

const isGood = ({ now, disabled }: Model, token: Token): boolean => !disabled && !token.revoked && now < token.until

const expected = (model: Model, token: Token, place: Place, needed: Role): string => {
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

const seen = async (real: Real, at: At, token: Token, place: Place, needed: Role): Promise<string> => {
  const organizationId = real.ids[place.org]
  const principal = await real.find(at, token.text, organizationId)
  if (principal === undefined) return 'invalid_token'
  const { project: projectId, env: environmentId } = place
  const target = { organizationId, projectId, environmentId }
  const judged = Promise.resolve().then(() => {
    authorize(principal, { role: needed, credentials: KINDS }, { target })
    return { status: 200 }
  })
  const answer = await outcomeOf(judged)
  return answer === 200 ? 'yes' : String(answer)
}

const asSession = ({ account }: Real): Principal => ({
  kind: 'session',
  subject: `user:${account.userId}`,
  userId: account.userId,
  credentialId: 'ses_test',
  isOperator: false,
  role: undefined,
  scopes: undefined,
})
const asOwner = (real: Real, org: 'a' | 'b') =>
  callOf(real.owner, { organizationId: real.ids[org], target: { organizationId: real.ids[org] } })
const subjectOf = ({ account }: Real): string => `user:${account.userId}`

interface Wish {
  readonly reach: Reach | undefined
  readonly ttl: Ttl | undefined
  /** By a personal token; undefined: in a session. */
  readonly maker: number | undefined
}

/** Makes a token as somebody wishes it; the model learns of it. */
const make = async (model: Model, real: Real, at: At, wish: Wish): Promise<number | string> => {
  const { reach, ttl, maker } = wish
  const makers = model.tokens.filter(each => each.reach === undefined && isGood(model, each))
  const by = maker === undefined ? undefined : makers[maker % Math.max(1, makers.length)]
  const principal = by === undefined ? asSession(real) : await real.find(at, by.text, real.ids.a)
  assert.ok(principal)
  const body = {
    name: 'one',
    ...(ttl && { ttl }),
    ...(reach && { scopes: [reach.scope(real.ids)] }),
    ...(reach?.bound && { organization_id: real.ids[reach.bound] }),
  }
  const until = model.now + (ttl === undefined ? (reach === undefined ? Infinity : 8 * HOUR) : LIVES[ttl])
  let made: Token | undefined
  const answer = await outcomeOf(
    createToken(real.world.inviting[at], callOf(principal), body).then(reply => {
      const record = bodyOf(reply)
      made = { id: record.id, text: record.token, reach, until, revoked: false }
      return reply
    }),
  )
  if (made !== undefined) model.tokens.push(made)
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
    const answers = await Promise.all(PLACES.map(place => seen(real, this.at, token, place, this.needed)))
    assert.deepEqual(
      answers,
      PLACES.map(place => expected(model, token, place, this.needed)),
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
    const own = this.by === 'itself' ? await real.find(1, token.text, real.ids.a) : undefined
    if (this.by === 'itself') assert.equal(own !== undefined, isGood(model, token))
    const principal = own ?? asSession(real)
    const revoke = (at: At) => outcomeOf(revokeToken(real.world.inviting[at], callOf(principal), token.id))
    const answers = await Promise.all(this.twice ? [revoke(0), revoke(1)] : [revoke(0)])
    assert.ok(answers.every(answer => answer === 200))
    token.revoked = true
    const events = await real.world.deps.database.rows(
      `select 1 from account_events where type = 'revoke_token' and metadata ->> 'token_id' = $1
       union all select 1 from audit_events where action = 'revoke_token' and resource_id = $1`,
      [token.id],
    )
    assert.ok(events.length <= 1, 'whoever comes second leaves no event, in either log')
    assert.equal(await seen(real, 1, token, PLACES[0]!, 'viewer'), 'invalid_token')
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
    const principal = (await real.find(0, agent.text, real.ids.a))!
    const answer = await outcomeOf(revokeToken(real.world.inviting[0], callOf(principal), other.id))
    assert.equal(answer, 'credential_not_allowed')
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
    const remove = () =>
      outcomeOf(
        removeMember(real.world.inviting[this.at], asOwner(real, this.org), {
          organizationId: real.ids[this.org],
          subject: subjectOf(real),
        }),
      )
    const making = this.wish && this.#make(model, real, this.wish)
    assert.equal(await remove(), 204)
    await making
    model.roles[this.org] = undefined
    for (const token of model.tokens) if (token.reach?.bound === this.org) token.revoked = true
    const bound = model.tokens.filter(({ reach }) => reach?.bound === this.org)
    const rows = await real.world.deps.database.rows('select 1 from tokens where id = any($1) and revoked_at is null', [
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
    const input = { organizationId: real.ids[this.org], subject: subjectOf(real), role: this.role }
    assert.equal(await outcomeOf(putMember(real.world.inviting[0], asOwner(real, this.org), input)), 200)
    model.roles[this.org] = this.role
  }
}

const age = async ({ world, account }: Real, seconds: number): Promise<void> => {
  await world.deps.database.rows(
    `update tokens set created_at = created_at - make_interval(secs => $2), expires_at = expires_at - make_interval(secs => $2)
     where user_id = $1`,
    [account.userId, seconds],
  )
}

describe('account tokens, against a model', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  it('do what the model says, whatever is asked in whichever order, on two replicas', async () => {
    const at = fc.constantFrom<At>(0, 1)
    const org = fc.constantFrom<'a' | 'b'>('a', 'a', 'b')
    const role = fc.constantFrom<Role>('viewer', 'developer', 'admin', 'owner')
    const wish = fc.record({
      reach: fc.option(fc.constantFrom(...REACHES), { nil: undefined, freq: 3 }),
      ttl: fc.option(fc.constantFrom(...(Object.keys(LIVES) as Ttl[])), { nil: undefined }),
      maker: fc.option(fc.nat(3), { nil: undefined }),
    })
    const commands = [
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
      fc.boolean().map(disabled => new Disable(disabled)),
      fc.constantFrom(1900, 5000, 30_000, 90_000, 700_000).map(seconds => new Pass(seconds, age)),
    ]
    const find = accountTokensOf(world)
    const founder = await world.user()
    const owner: Principal = { ...founder, kind: 'session', role: 'owner' }
    let last = 0
    const start = async () => {
      const number = ++last
      const ids = { a: `org-a-${number}`, b: `org-b-${number}` }
      const account = await modelAccount(world, 'one red kite over the moor')
      await world.deps.database.rows(
        `with o as (insert into organizations (organization_id, name) values ($1, 'A'), ($2, 'B'))
         insert into memberships (organization_id, user_id, role)
         values ($1, $3, 'owner'), ($2, $3, 'owner'), ($1, $4, 'admin'), ($2, $4, 'developer')`,
        [ids.a, ids.b, founder.userId, account.userId],
      )
      const model: Model = { now: 0, disabled: false, roles: { a: 'admin', b: 'developer' }, tokens: [] }
      return { model, real: { world, account, owner, ids, find } satisfies Real }
    }
    const sequences = sized(200, 10_000)
    const steps = await runSequences<Model, Real>(commands, start, sequences, 8)
    assert.ok(steps > sequences)
  }).timeout(900_000)
})
