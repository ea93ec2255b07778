import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import fc, { type AsyncCommand } from 'fast-check'
import { silentLog } from '../../runtime/log/log.ts'
import { bodyOf } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import { type HostileProvider, startHostileProvider } from '../../testkit/hostile-provider.ts'
import { accountTokensOf, callOf, sessionsOf } from '../../testkit/login-model.ts'
import {
  type At,
  type MailWorld,
  mailWorld,
  openCallOf,
  outcomeOf,
  Pass,
  runSequences,
} from '../../testkit/mail-model.ts'
import { ssoConfiguration } from '../../testkit/sso.ts'
import { SsoProviders } from '../auth/oidc/sso-providers.ts'
import type { Call } from '../commands/call.ts'
import { createToken } from '../commands/create-token.ts'
import type { LoginDependencies } from '../commands/login/dependencies.ts'
import { putMember } from '../commands/put-member.ts'
import { putOrganization } from '../commands/put-organization.ts'
import { removeMember } from '../commands/remove-member.ts'
import { deleteSso } from '../commands/sso/delete-sso.ts'
import { finishSso } from '../commands/sso/finish-sso.ts'
import { putSso } from '../commands/sso/put-sso.ts'
import { startSso } from '../commands/sso/start-sso.ts'
import { parseNetworks } from '../config/trusted-networks.ts'

const [IDLE, ABSOLUTE, FLOW, TOUCH] = [7200, 43_200, 600, 60]
const PERSON = 'mallory'

interface Flow {
  readonly state: string
  readonly flow_token: string
  readonly nonce: string
  readonly revision: number
  readonly begunAt: number
  isSpent: boolean
}
interface Session {
  readonly token: string
  readonly issuer: number
  readonly begunAt: number
  usedAt: number
}
interface Token {
  readonly token: string
  readonly issuer: number
}
/** What is true of one organization and of one person whom both of two providers know, in seconds of its own clock. */
interface Model {
  now: number
  revision: number
  sso: { readonly issuer: number; readonly joins: boolean } | undefined
  flows: Flow[]
  sessions: Session[]
  tokens: Token[]
  /** What worked once. */
  ended: { readonly sessions: string[]; readonly tokens: string[] }
  /** By issuer: nobody knows them, they are a member, or are none any more. */
  readonly accounts: ('unknown' | 'member' | 'none')[]
  readonly disabled: boolean[]
}
interface Real {
  readonly world: MailWorld
  readonly login: readonly [LoginDependencies, LoginDependencies]
  readonly providers: readonly [HostileProvider, HostileProvider]
  readonly org: string
}
type Step = AsyncCommand<Model, Real>

const ownerCall = ({ world, org }: Pick<Real, 'world' | 'org'>): Call =>
  callOf({ ...world.owner, role: 'owner' }, { organizationId: org })

const endAll = (model: Model, which: (each: { readonly issuer: number }) => boolean = () => true): void => {
  model.ended.sessions.push(...model.sessions.filter(which).map(({ token }) => token))
  model.ended.tokens.push(...model.tokens.filter(which).map(({ token }) => token))
  model.sessions = model.sessions.filter(each => !which(each))
  model.tokens = model.tokens.filter(each => !which(each))
}
const isOver = ({ now, disabled }: Model, { issuer, begunAt, usedAt }: Session): boolean =>
  disabled[issuer] === true || now - usedAt >= IDLE || now - begunAt >= ABSOLUTE

const put = ({ world, login, providers, org }: Real, at: At, issuer: number, joins: boolean) =>
  putSso({ ...world.deps, database: login[at].database, login: login[at] }, ownerCall({ world, org }), {
    organizationId: org,
    ...ssoConfiguration(providers[issuer]!),
    ...(joins && { default_role: 'developer' as const }),
  })
const noteChange = (model: Model, sso: Model['sso']): void => {
  if (model.sso !== undefined && model.sso.issuer !== sso?.issuer) endAll(model)
  model.sso = sso
  model.revision++
}

class Put implements Step {
  readonly at: At
  readonly issuer: number
  readonly joins: boolean
  constructor(at: At, issuer: number, joins: boolean) {
    this.at = at
    this.issuer = issuer
    this.joins = joins
  }
  check = (): boolean => true
  toString = (): string => `provider ${this.issuer}${this.joins ? ', who comes joins' : ''}, at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    assert.equal(await outcomeOf(put(real, this.at, this.issuer, this.joins)), 200)
    noteChange(model, { issuer: this.issuer, joins: this.joins })
  }
}

class Delete implements Step {
  check = (): boolean => true
  toString = (): string => 'no provider any more'
  async run(model: Model, real: Real): Promise<void> {
    const outcome = await outcomeOf(deleteSso(real.world.deps, ownerCall(real), real.org))
    assert.equal(outcome, model.sso === undefined ? 'sso_not_found' : 204)
    noteChange(model, undefined)
  }
}

class Start implements Step {
  readonly at: At
  constructor(at: At) {
    this.at = at
  }
  check = (): boolean => true
  toString = (): string => `begin at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const asked = startSso(real.login[this.at], openCallOf(), { organization_id: real.org })
    if (model.sso === undefined) {
      assert.equal(await outcomeOf(asked), 'sso_not_found')
      return
    }
    const { authorization_url, state, flow_token } = bodyOf(await asked)
    const nonce = new URL(authorization_url).searchParams.get('nonce') ?? ''
    model.flows.push({ state, flow_token, nonce, revision: model.revision, begunAt: model.now, isSpent: false })
  }
}

/** What the model says of a finish, and notes of it; a number: a session begins. */
const judgeFinish = (model: Model, flow: Flow): number | string => {
  if (flow.isSpent || model.now - flow.begunAt >= FLOW) return 'invalid_sso_state'
  flow.isSpent = true
  const { sso } = model
  if (sso === undefined || flow.revision !== model.revision) return 'invalid_sso_state'
  if (model.accounts[sso.issuer] === 'unknown' && sso.joins) model.accounts[sso.issuer] = 'member'
  return model.accounts[sso.issuer] === 'member' && model.disabled[sso.issuer] !== true ? 200 : 'membership_required'
}
/** The provider answers with the nonce that the code stands for. */
const finish = async (real: Real, at: At, { state, flow_token, nonce }: Flow, begun: (token: string) => void) =>
  outcomeOf(
    finishSso(real.login[at], openCallOf(), { state, flow_token, code: nonce }).then(reply => {
      begun(bodyOf(reply).token)
      return reply
    }),
  )
const beginOf =
  (model: Model) =>
  (token: string): void => {
    const issuer = model.sso?.issuer ?? 0
    model.sessions.push({ token, issuer, begunAt: model.now, usedAt: model.now })
  }

class Finish implements Step {
  readonly at: At
  readonly pick: number
  readonly isTwice: boolean
  constructor(at: At, pick: number, isTwice: boolean) {
    this.at = at
    this.pick = pick
    this.isTwice = isTwice
  }
  check = ({ flows }: Readonly<Model>): boolean => flows.length > 0
  toString = (): string => `come back ${this.isTwice ? 'twice at once' : `at ${this.at}`} with ${this.pick}`
  async run(model: Model, real: Real): Promise<void> {
    const flow = model.flows[this.pick % model.flows.length]!
    const ats = this.isTwice ? ([0, 1] as const) : [this.at]
    const seen = await Promise.all(ats.map(at => finish(real, at, flow, beginOf(model))))
    const expected = ats.map(() => judgeFinish(model, flow))
    assert.deepEqual(seen.map(String).sort(), expected.map(String).sort())
  }
}

class FinishElsewhere implements Step {
  readonly pick: number
  constructor(pick: number) {
    this.pick = pick
  }
  check = ({ flows }: Readonly<Model>): boolean => flows.length > 1
  toString = (): string => `another browser comes back with ${this.pick}`
  async run(model: Model, real: Real): Promise<void> {
    const flow = model.flows[this.pick % model.flows.length]!
    const other = model.flows[(this.pick + 1) % model.flows.length]!
    const swapped = { ...flow, flow_token: other.flow_token }
    assert.equal(await finish(real, 0, swapped, beginOf(model)), 'invalid_sso_state')
  }
}

class FinishDuringChange implements Step {
  readonly pick: number
  constructor(pick: number) {
    this.pick = pick
  }
  check = ({ flows, sso }: Readonly<Model>): boolean => flows.length > 0 && sso !== undefined
  toString = (): string => `come back with ${this.pick} while the provider becomes the other one`
  async run(model: Model, real: Real): Promise<void> {
    const flow = model.flows[this.pick % model.flows.length]!
    const issuer = model.sso!.issuer
    const tokens: string[] = []
    const [seen] = await Promise.all([
      finish(real, 0, flow, token => tokens.push(token)),
      put(real, 1, 1 - issuer, false),
    ])
    const before = model.accounts[issuer]!
    const expected = judgeFinish(model, flow)
    assert.ok([expected, 'invalid_sso_state'].includes(seen), `${seen} instead of ${expected}`)
    // Whoever came too late has joined nothing.
    if (seen === 'invalid_sso_state') model.accounts[issuer] = before
    noteChange(model, { issuer: 1 - issuer, joins: false })
    model.ended.sessions.push(...tokens)
  }
}

class Member implements Step {
  readonly isAdded: boolean
  constructor(isAdded: boolean) {
    this.isAdded = isAdded
  }
  check = (): boolean => true
  toString = (): string => (this.isAdded ? 'an admin adds them' : 'an admin removes them')
  async run(model: Model, real: Real): Promise<void> {
    const { world, org } = real
    const about = { organizationId: org, subject: `sso:${PERSON}` }
    const issuer = model.sso?.issuer
    if (this.isAdded) {
      const outcome = await outcomeOf(putMember(world.deps, ownerCall(real), { ...about, role: 'viewer' }))
      assert.equal(outcome, issuer === undefined ? 'user_not_found' : 200)
      if (issuer !== undefined) model.accounts[issuer] = 'member'
      return
    }
    const isMember = issuer !== undefined && model.accounts[issuer] === 'member'
    assert.equal(await outcomeOf(removeMember(world.deps, ownerCall(real), about)), isMember ? 204 : 'member_not_found')
    if (!isMember) return
    model.accounts[issuer] = 'none'
    endAll(model, each => each.issuer === issuer)
  }
}

class SetDisabled implements Step {
  readonly isDisabled: boolean
  constructor(isDisabled: boolean) {
    this.isDisabled = isDisabled
  }
  check = ({ sso, accounts }: Readonly<Model>): boolean => sso !== undefined && accounts[sso.issuer] !== 'unknown'
  toString = (): string => (this.isDisabled ? 'they are disabled' : 'they are enabled')
  async run(model: Model, { world, org, providers }: Real): Promise<void> {
    const { issuer } = model.sso!
    await world.deps.database.rows(
      `update users set disabled_at = case when $3 then now() end where sso_organization_id = $1 and sso_issuer = $2`,
      [org, providers[issuer]!.issuer, this.isDisabled],
    )
    model.disabled[issuer] = this.isDisabled
  }
}

class UseAll implements Step {
  readonly at: At
  readonly makesToken: boolean
  constructor(at: At, makesToken: boolean) {
    this.at = at
    this.makesToken = makesToken
  }
  check = (): boolean => true
  toString = (): string => `use everything at ${this.at}${this.makesToken ? ', and make a token' : ''}`
  async run(model: Model, real: Real): Promise<void> {
    const { world, org } = real
    const [findSession, findToken] = [sessionsOf(world), accountTokensOf(world)]
    for (const session of model.sessions) {
      const found = await findSession(this.at, session.token)
      assert.equal(found !== undefined, !isOver(model, session))
      if (found === undefined) continue
      if (model.now - session.usedAt >= TOUCH) session.usedAt = model.now
      assert.equal(found.principal.boundTo, org)
      if (!this.makesToken) continue
      const made = await createToken(world.deps, callOf(found.principal), { name: 'token' })
      model.tokens.push({ token: bodyOf(made).token, issuer: session.issuer })
    }
    for (const { token, issuer } of model.tokens) {
      const found = await findToken(this.at, token, org)
      assert.equal(found?.role !== undefined, model.disabled[issuer] !== true)
      if (found !== undefined) assert.equal((await findToken(this.at, token, 'acme'))?.role, undefined)
    }
    for (const token of model.ended.sessions) assert.equal(await findSession(this.at, token), undefined)
    for (const token of model.ended.tokens) assert.equal(await findToken(this.at, token, org), undefined)
  }
}

const age = ({ world, org }: Real, seconds: number): Promise<unknown> =>
  world.deps.database.rows(
    `with f as (update sso_flows set expires_at = expires_at - make_interval(secs => $2) where organization_id = $1)
     update sessions set created_at = created_at - make_interval(secs => $2), last_used_at = last_used_at - make_interval(secs => $2)
       where organization_id = $1`,
    [org, seconds],
  )

const at = fc.constantFrom<At>(0, 1)
const pick = fc.nat(50)

describe('single sign-on, against a model', function () {
  this.timeout(3_600_000)
  let world: MailWorld
  let providers: readonly [HostileProvider, HostileProvider]
  before(async () => {
    world = await mailWorld()
    providers = [await startHostileProvider(), await startHostileProvider()]
  })
  after(async () => {
    await Promise.all(providers.map(provider => provider.stop()))
    await world.stop()
  })

  it('lets in whom it should, and ends what it should, on two replicas', async () => {
    const login = world.login.map(each => ({
      ...each,
      providers: new SsoProviders({ allowed: parseNetworks(['127.0.0.0/8']), caFile: undefined, log: silentLog }),
    })) as unknown as Real['login']
    const begin = async (): Promise<{ model: Model; real: Real }> => {
      const org = `org-${randomUUID()}`
      const real: Real = { world, login, providers, org }
      await putOrganization(world.deps, callOf({ ...world.owner, role: undefined }, { organizationId: org }), {
        organizationId: org,
        name: 'Org',
      })
      const model: Model = {
        now: 0,
        revision: 0,
        sso: undefined,
        flows: [],
        sessions: [],
        tokens: [],
        ended: { sessions: [], tokens: [] },
        accounts: ['unknown', 'unknown'],
        disabled: [false, false],
      }
      // Somebody is in: what ends it is what sequences are about.
      const first = [new Put(0, 0, true), new Start(0), new Finish(0, 0, false), new UseAll(0, true)]
      for (const step of first) await step.run(model, real)
      return { model, real }
    }
    const commands = [
      fc.tuple(at, fc.nat(1), fc.boolean()).map(each => new Put(...each)),
      fc.tuple(at, fc.nat(1), fc.constant(true)).map(each => new Put(...each)),
      at.map(each => new Start(each)),
      at.map(each => new Start(each)),
      fc.tuple(at, pick, fc.boolean()).map(each => new Finish(...each)),
      fc.tuple(at, pick, fc.boolean()).map(each => new Finish(...each)),
      pick.map(each => new FinishElsewhere(each)),
      pick.map(each => new FinishDuringChange(each)),
      fc.boolean().map(each => new Member(each)),
      fc.boolean().map(each => new SetDisabled(each)),
      fc.tuple(at, fc.boolean()).map(each => new UseAll(...each)),
      fc.tuple(at, fc.boolean()).map(each => new UseAll(...each)),
      fc.constant(new Delete()),
      fc.constantFrom(30, 540, 601, 7000).map(each => new Pass<Model, Real>(each, age)),
    ]
    const sequences = sized(40, 1_000)
    const steps = await runSequences<Model, Real>(commands, begin, sequences, 25)
    assert.ok(steps > sequences)
  })
})
