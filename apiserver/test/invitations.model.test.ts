import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import fc, { type AsyncCommand } from 'fast-check'
import { type Role, roleAtLeast } from '../../lib/model/credential.ts'
import { sized } from '../../testkit/full.ts'
import { type MailWorld, mailWorld, openCallOf, outcomeOf, Pass, runSequences } from '../../testkit/mail-model.ts'
import type { Call, Principal } from '../commands/call.ts'
import { createInvitation } from '../commands/create-invitation.ts'
import { acceptInvitation } from '../commands/login/accept-invitation.ts'
import { revokeInvitation } from '../commands/revoke-invitation.ts'

const DAY = 86_400

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

interface Real {
  readonly world: MailWorld
  readonly org: string
  readonly email: string
  readonly inviterId: string
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

const callOf = ({ org, inviterId }: Real, role: Role): Call => ({
  ...openCallOf(),
  principal: principalOf(inviterId, role),
  organizationId: org,
  target: { organizationId: org },
  pathParams: { org },
  idempotencyKey: undefined,
  contentHash: Buffer.alloc(0),
})
const principalOf = (userId: string, role: Role | undefined): Principal => ({
  kind: 'session',
  subject: `user:${userId}`,
  userId,
  credentialId: 'ses_test',
  isOperator: false,
  role,
  scopes: undefined,
})
const accountOf = async ({ world, email }: Real): Promise<string | undefined> =>
  (await world.deps.database.row<{ id: string }>('select user_id as id from users where email = $1', [email]))?.id
const accept = async (real: Real, at: 0 | 1, token: string, userId?: string): Promise<number | string> => {
  const call = { ...openCallOf(), ...(userId !== undefined && { caller: principalOf(userId, undefined) }) }
  return outcomeOf(acceptInvitation(real.world.login[at], call, { token, password: 'seven wet stones at the pier' }))
}

class Invite implements Step {
  readonly at: 0 | 1
  readonly role: Role
  constructor(at: 0 | 1, role: Role) {
    this.at = at
    this.role = role
  }
  // The rim lets nobody below come here.
  check = ({ inviter }: Readonly<Model>): boolean => roleAtLeast(inviter, 'admin')
  toString = (): string => `invite as ${this.role} at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const { org, email, world } = real
    const call = callOf(real, model.inviter)
    const answer = await outcomeOf(
      createInvitation(world.inviting[this.at], call, { organizationId: org, email, role: this.role }),
    )
    const isOwner = model.inviter === 'owner'
    if (this.role === 'owner' && !isOwner) {
      assert.equal(answer, 'forbidden')
      return
    }
    if (model.isMember !== undefined) {
      assert.equal(answer, 'member_exists')
      return
    }
    // Also one that ran out, until it is swept.
    if (model.invitation?.role === 'owner' && !isOwner) {
      assert.equal(answer, 'forbidden')
      return
    }
    assert.equal(answer, 201)
    end(model)
    const { secret } = (await world.waiting(email))!
    const row = await world.deps.database.row<{ id: string }>('select id from invitations where email = $1', [email])
    model.invitation = { id: row!.id, token: secret['token']!, role: this.role, until: model.now + 7 * DAY }
  }
}

class Accept implements Step {
  readonly at: 0 | 1
  readonly which: number
  readonly signedIn: boolean
  constructor(at: 0 | 1, which: number, signedIn: boolean) {
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
    const answer = await accept(real, this.at, token, asUser ? await accountOf(real) : undefined)
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
    const userId = model.hasAccount ? await accountOf(real) : undefined
    const revoking = (): Promise<number | string> =>
      outcomeOf(revokeInvitation(real.world.inviting[1], callOf(real, model.inviter), { organizationId: real.org, id }))
    const [one, two] = await Promise.all([
      accept(real, 0, token, userId),
      this.revokes ? revoking() : accept(real, 1, token, userId),
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
    const { id } = model.invitation!
    const call = callOf(real, model.inviter)
    const answer = await outcomeOf(revokeInvitation(real.world.inviting[0], call, { organizationId: real.org, id }))
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
    assert.equal(await real.world.waiting(real.email), undefined, 'its letter goes with it')
  }
}

class BecomeRole implements Step {
  readonly role: Role
  constructor(role: Role) {
    this.role = role
  }
  check = (): boolean => true
  toString = (): string => `the inviter becomes ${this.role}`
  async run(model: Model, { world, org, inviterId }: Real): Promise<void> {
    const values = [this.role, org, inviterId]
    await world.deps.database.rows(
      'update memberships set role = $1 where organization_id = $2 and user_id = $3',
      values,
    )
    model.inviter = this.role
  }
}

class Leave implements Step {
  check = ({ isMember }: Readonly<Model>): boolean => isMember !== undefined
  toString = (): string => 'the member leaves'
  async run(model: Model, { world, org, email }: Real): Promise<void> {
    const sql =
      'delete from memberships where organization_id = $1 and user_id = (select user_id from users where email = $2)'
    await world.deps.database.rows(sql, [org, email])
    model.isMember = undefined
  }
}

const age = async ({ world, email }: Real, seconds: number): Promise<void> => {
  await world.pass(email, seconds)
}

describe('invitations, against a model', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  it('do what the model says, whatever is asked in whichever order, on two replicas', async () => {
    const at = fc.constantFrom<0 | 1>(0, 1)
    const role = fc.constantFrom<Role>('viewer', 'developer', 'admin', 'owner')
    const commands = [
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
    const inviterId = (await world.user()).userId!
    let last = 0
    const begin = async () => {
      const org = `org-${++last}`
      await world.deps.database.rows(
        `with o as (insert into organizations (organization_id, name) values ($1, 'Org'))
         insert into memberships (organization_id, user_id, role) values ($1, $2, 'owner')`,
        [org, inviterId],
      )
      const model: Model = {
        now: 0,
        inviter: 'owner',
        invitation: undefined,
        old: [],
        hasAccount: false,
        isMember: undefined,
      }
      return { model, real: { world, org, email: `${randomUUID()}@example.com`, inviterId } }
    }
    const sequences = sized(500, 10_000)
    const steps = await runSequences(commands, begin, sequences, 10)
    assert.ok(steps > sequences)
  }).timeout(900_000)
})
