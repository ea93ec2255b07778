import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import fc, { type AsyncCommand } from 'fast-check'
import { type Role, roleAtLeast } from '../../lib/model/credential.ts'
import { sized } from '../../testkit/full.ts'
import { modelAccount, modelSession } from '../../testkit/login-model.ts'
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
import type { Call, Principal } from '../commands/call.ts'
import { createInvitation } from '../commands/create-invitation.ts'
import { acceptInvitation } from '../commands/login/accept-invitation.ts'
import { revokeInvitation } from '../commands/revoke-invitation.ts'

const DAY = 86_400
const PASSWORD = 'seven wet stones at the pier'

interface Invitation {
  readonly id: string
  readonly token: string
  readonly role: Role
  readonly until: number
}

/** What is true of one address in one organization. */
interface Model {
  now: number
  /** Of whoever invites. */
  inviter: Role
  invitation: Invitation | undefined
  old: string[]
  hasAccount: boolean
  isMember: Role | undefined
}

/** Somebody in a session. */
interface Person {
  readonly userId: string
  /** Of the session. */
  readonly token: string
}

/** Who invites, and what they are now. */
interface Inviter extends Person {
  readonly org: string
  readonly role: Role
}

/** What the model does to the service. */
interface Invitations {
  invite(at: At, by: Inviter, email: string, role: Role): Promise<Outcome>
  revoke(at: At, by: Inviter, id: string): Promise<Outcome>
  /** Undefined: whoever has no session. */
  accept(at: At, token: string, by: Person | undefined): Promise<Outcome>
}

interface Real {
  readonly ground: ModelGround
  readonly invitations: Invitations
  readonly org: string
  readonly email: string
  readonly inviter: Person
}

type Step = AsyncCommand<Model, Real>

const open = ({ invitation, now }: Model): Invitation | undefined =>
  invitation !== undefined && now < invitation.until ? invitation : undefined
/** Whether the inviter could still give it. */
const offered = (model: Model): Invitation | undefined => {
  const invitation = open(model)
  const needed = invitation?.role === 'owner' ? 'owner' : 'admin'
  return invitation !== undefined && roleAtLeast(model.inviter, needed) ? invitation : undefined
}
const end = (model: Model): void => {
  if (model.invitation !== undefined) model.old.push(model.invitation.token)
  model.invitation = undefined
}

const principalOf = (userId: string, role: Role | undefined): Principal => ({
  kind: 'session',
  subject: `user:${userId}`,
  userId,
  credentialId: 'ses_test',
  isOperator: false,
  role,
  scopes: undefined,
})
const callOf = ({ org, userId, role }: Inviter): Call => ({
  ...openCallOf(),
  principal: principalOf(userId, role),
  organizationId: org,
  target: { organizationId: org },
  pathParams: { org },
  idempotencyKey: undefined,
  contentHash: Buffer.alloc(0),
})

const byCommands = ({ login, inviting }: MailWorld): Invitations => ({
  invite: (at, by, email, role) =>
    outcomeOf(createInvitation(inviting[at], callOf(by), { organizationId: by.org, email, role })),
  revoke: (at, by, id) => outcomeOf(revokeInvitation(inviting[at], callOf(by), { organizationId: by.org, id })),
  accept: (at, token, by) => {
    const call = { ...openCallOf(), ...(by && { caller: principalOf(by.userId, undefined) }) }
    return outcomeOf(acceptInvitation(login[at], call, { token, password: PASSWORD }))
  },
})

const throughHttp = ({ outcome }: ModelProcesses): Invitations => ({
  invite: (at, { org, token }, email, role) =>
    outcome(at, 'createInvitation', { params: { org }, body: { email, role } }, token),
  revoke: (at, { org, token }, id) => outcome(at, 'revokeInvitation', { params: { org, invitation: id } }, token),
  accept: (at, token, by) => outcome(at, 'acceptInvitation', { body: { token, password: PASSWORD } }, by?.token),
})

const inviterOf = ({ org, inviter }: Real, { inviter: role }: Model): Inviter => ({ ...inviter, org, role })
/** The account of the address, in a session. */
const invitedOf = async ({ ground, email }: Real): Promise<Person | undefined> => {
  const sql = 'select user_id as id from users where email = $1'
  const account = await ground.database.row<{ id: string }>(sql, [email])
  return account && { userId: account.id, token: (await modelSession(ground, account.id)).token }
}

class Invite implements Step {
  readonly at: At
  readonly role: Role
  constructor(at: At, role: Role) {
    this.at = at
    this.role = role
  }
  // The rim lets nobody below come here.
  check = ({ inviter }: Readonly<Model>): boolean => roleAtLeast(inviter, 'admin')
  toString = (): string => `invite as ${this.role} at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const { email, ground, invitations } = real
    const answer = await invitations.invite(this.at, inviterOf(real, model), email, this.role)
    const isOwner = model.inviter === 'owner'
    if (this.role === 'owner' && !isOwner) {
      assert.equal(answer, 'forbidden')
      return
    }
    if (model.isMember !== undefined) {
      assert.equal(answer, 'member_exists')
      return
    }
    if (model.invitation?.role === 'owner' && !isOwner) {
      // Also one that ran out, until it is swept.
      const isSwept = open(model) === undefined && answer === 201
      if (!isSwept) {
        assert.equal(answer, 'forbidden')
        return
      }
    }
    assert.equal(answer, 201)
    end(model)
    const { secret } = (await ground.waiting(email))!
    const row = await ground.database.row<{ id: string }>('select id from invitations where email = $1', [email])
    model.invitation = { id: row!.id, token: secret['token']!, role: this.role, until: model.now + 7 * DAY }
  }
}

class Accept implements Step {
  readonly at: At
  readonly which: number
  readonly signedIn: boolean
  constructor(at: At, which: number, signedIn: boolean) {
    this.at = at
    this.which = which
    this.signedIn = signedIn
  }
  check = (model: Readonly<Model>): boolean => model.invitation !== undefined || model.old.length > 0
  toString = (): string => `accept ${this.which} at ${this.at}${this.signedIn ? ' in a session' : ''}`
  async run(model: Model, real: Real): Promise<void> {
    const old = model.old[this.which]
    const token = old ?? model.invitation?.token ?? model.old[0]!
    const good = offered(model)
    const asUser = this.signedIn && model.hasAccount
    const answer = await real.invitations.accept(this.at, token, asUser ? await invitedOf(real) : undefined)
    if (good?.token !== token) {
      assert.equal(answer, 'invitation_not_found')
      return
    }
    if (model.hasAccount && !asUser) {
      assert.equal(answer, 'invitation_email_mismatch')
      return
    }
    if (model.isMember !== undefined) {
      assert.equal(answer, 'member_exists')
      return
    }
    assert.equal(answer, 201)
    model.hasAccount = true
    model.isMember = good.role
    end(model)
  }
}

class Race implements Step {
  readonly revokes: boolean
  constructor(revokes: boolean) {
    this.revokes = revokes
  }
  check = (model: Readonly<Model>): boolean =>
    offered(model) !== undefined &&
    model.isMember === undefined &&
    (model.invitation?.role !== 'owner' || model.inviter === 'owner')
  toString = (): string => (this.revokes ? 'accept and revoke at the same moment' : 'accept twice at the same moment')
  async run(model: Model, real: Real): Promise<void> {
    const { token, id, role } = model.invitation!
    const { invitations } = real
    const invited = model.hasAccount ? await invitedOf(real) : undefined
    const [one, two] = await Promise.all([
      invitations.accept(0, token, invited),
      this.revokes ? invitations.revoke(1, inviterOf(real, model), id) : invitations.accept(1, token, invited),
    ])
    assert.equal([one, two].filter(answer => typeof answer === 'number').length, 1, `${one} ${two}`)
    if (one === 201 || two === 201) {
      model.hasAccount = true
      model.isMember = role
    }
    end(model)
  }
}

class Revoke implements Step {
  check = ({ invitation, inviter }: Readonly<Model>): boolean =>
    invitation !== undefined && roleAtLeast(inviter, 'admin')
  toString = (): string => 'revoke'
  async run(model: Model, real: Real): Promise<void> {
    const answer = await real.invitations.revoke(0, inviterOf(real, model), model.invitation!.id)
    const kept = open(model)
    if (kept === undefined) {
      assert.equal(answer, 'invitation_not_found')
      return
    }
    if (kept.role === 'owner' && model.inviter !== 'owner') {
      assert.equal(answer, 'forbidden')
      return
    }
    assert.equal(answer, 204)
    end(model)
    assert.equal(await real.ground.waiting(real.email), undefined, 'its letter goes with it')
  }
}

class BecomeRole implements Step {
  readonly role: Role
  constructor(role: Role) {
    this.role = role
  }
  check = (): boolean => true
  toString = (): string => `the inviter becomes ${this.role}`
  async run(model: Model, { ground, org, inviter }: Real): Promise<void> {
    const sql = 'update memberships set role = $1 where organization_id = $2 and user_id = $3'
    await ground.database.rows(sql, [this.role, org, inviter.userId])
    model.inviter = this.role
  }
}

class Leave implements Step {
  check = ({ isMember }: Readonly<Model>): boolean => isMember !== undefined
  toString = (): string => 'the member leaves'
  async run(model: Model, { ground, org, email }: Real): Promise<void> {
    const sql =
      'delete from memberships where organization_id = $1 and user_id = (select user_id from users where email = $2)'
    await ground.database.rows(sql, [org, email])
    model.isMember = undefined
  }
}

const age = async ({ ground, email }: Real, seconds: number): Promise<void> => {
  await ground.pass(email, seconds)
}

const commands = () => {
  const at = fc.constantFrom<At>(0, 1)
  const role = fc.constantFrom<Role>('viewer', 'developer', 'admin', 'owner')
  return [
    fc.tuple(at, role).map(([each, given]) => new Invite(each, given)),
    fc.tuple(at, role).map(([each, given]) => new Invite(each, given)),
    fc.tuple(at, fc.nat(2), fc.boolean()).map(([each, which, signedIn]) => new Accept(each, which, signedIn)),
    fc.tuple(at, fc.boolean()).map(([each, signedIn]) => new Accept(each, 99, signedIn)),
    fc.boolean().map(revokes => new Race(revokes)),
    fc.constant(new Revoke()),
    role.map(given => new BecomeRole(given)),
    fc.constant(new Leave()),
    fc.constantFrom(1, 6, 8).map(days => new Pass(days * DAY, age)),
  ]
}

const beginOn = async (ground: ModelGround, invitations: Invitations) => {
  const { userId } = await modelAccount(ground, PASSWORD)
  const inviter = { userId, token: (await modelSession(ground, userId)).token }
  return async () => {
    const org = `org-${randomUUID().slice(0, 18)}`
    await ground.database.rows(
      `with o as (insert into organizations (organization_id, name) values ($1, 'Org'))
       insert into memberships (organization_id, user_id, role) values ($1, $2, 'owner')`,
      [org, userId],
    )
    const model: Model = {
      now: 0,
      inviter: 'owner',
      invitation: undefined,
      old: [],
      hasAccount: false,
      isMember: undefined,
    }
    return { model, real: { ground, invitations, org, email: `${randomUUID()}@example.com`, inviter } }
  }
}

describe('invitations, against a model', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  it('do what the model says, whatever is asked in whichever order, on two replicas', async () => {
    const sequences = sized(500, 10_000)
    const steps = await runSequences(commands(), await beginOn(world, byCommands(world)), sequences, 10)
    assert.ok(steps > sequences)
  }).timeout(900_000)

  it('do so through HTTP, at two server processes', async () => {
    const processes = await modelProcesses()
    const sequences = sized(8, 50)
    const steps = await runSequences(commands(), await beginOn(processes, throughHttp(processes)), sequences, 10)
    assert.ok(steps > sequences)
  }).timeout(120_000)
})
