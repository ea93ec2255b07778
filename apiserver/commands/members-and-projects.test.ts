import assert from 'node:assert/strict'
import type { Role } from '../../lib/model/credential.ts'
import { isCode } from '../../testkit/assert-code.ts'
import { bodyOf, type CommandWorld, commandWorld, createBody, pathOf } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import type { PutProjectBody } from '../contract/projects.ts'
import { findEnvironment } from '../store/environments.ts'
import { findMember } from '../store/memberships.ts'
import { findOperation } from '../store/operations.ts'
import { findProject } from '../store/projects.ts'
import type { Principal } from './call.ts'
import { createEnvironment } from './create-environment.ts'
import { deleteEnvironment } from './delete-environment.ts'
import { deleteProject } from './delete-project.ts'
import { makeUser } from './make-user.ts'
import { putMember } from './put-member.ts'
import { putOrganization } from './put-organization.ts'
import { putProject } from './put-project.ts'
import { removeMember } from './remove-member.ts'

describe('organizations, members and projects', () => {
  let world: CommandWorld
  let serial = 0
  before(async () => (world = await commandWorld()))
  after(() => world.stop())

  const organization = async (): Promise<{ id: string; owner: Principal }> => {
    const id = `org-${++serial}`
    const operator = { ...(await world.user()), isOperator: true }
    await putOrganization(world.deps, world.call(operator), { organizationId: id, name: id })
    return { id, owner: { ...operator, role: 'owner' } }
  }
  const join = async (id: string, owner: Principal, role: Role): Promise<Principal> => {
    const user = await world.user()
    await putMember(world.deps, world.call(owner), { organizationId: id, subject: user.subject, role })
    return { ...user, role }
  }
  const roleOf = async (id: string, { userId }: Principal) =>
    (await findMember(world.plane.database, id, userId!))?.role

  describe('putOrganization', () => {
    const put = (as: Principal, id: string, name = 'A name') =>
      putOrganization(world.deps, world.call(as), { organizationId: id, name })

    it('makes its creator owner, renames for admins, and leaves an event each time', async () => {
      const { id, owner } = await organization()
      assert.equal(await roleOf(id, owner), 'owner')
      const admin = await join(id, owner, 'admin')
      assert.equal(bodyOf(await put(admin, id, 'Neu')).name, 'Neu')
      await assert.rejects(put(await join(id, owner, 'developer'), id), isCode('forbidden', { required_role: 'admin' }))
      const events = await world.audit(id)
      assert.deepEqual(
        events.filter(({ action }) => action === 'put_organization').map(({ metadata }) => metadata['name']),
        [id, 'Neu'],
      )
    })

    it('tells those who may not create nothing: the same answer for a free and a taken id', async () => {
      const stranger = await world.user()
      const { id } = await organization()
      for (const target of [id, 'certainly-free']) await assert.rejects(put(stranger, target), isCode('forbidden'))
      const operator = { ...stranger, isOperator: true }
      await assert.rejects(put(operator, id), isCode('organization_not_found'))
    })

    it('lets everybody create where sign-up is open, one of sixteen at once for an id', async () => {
      const deps = { ...world.deps, settings: { ...world.deps.settings, publicSignup: true } }
      const users = await Promise.all(Array.from({ length: 16 }, () => world.user()))
      const results = await Promise.allSettled(
        users.map(user => putOrganization(deps, world.call(user), { organizationId: 'open-1', name: 'Open' })),
      )
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
      const roles = await Promise.all(users.map(user => roleOf('open-1', user)))
      assert.deepEqual(
        roles.filter(role => role !== undefined),
        ['owner'],
      )
    })
  })

  describe('members', () => {
    const put = (id: string, as: Principal, target: Principal | string, role: Role) =>
      putMember(world.deps, world.call(as), {
        organizationId: id,
        subject: typeof target === 'string' ? target : target.subject,
        role,
      })
    const remove = (id: string, as: Principal, target: Principal) =>
      removeMember(world.deps, world.call(as), { organizationId: id, subject: target.userId! })

    it('are added, changed and removed, with an event each', async () => {
      const { id, owner } = await organization()
      const ada = await world.user()
      const member = bodyOf(await put(id, owner, ada, 'viewer'))
      assert.deepEqual([member.user_id, member.subject, member.role], [ada.userId, ada.subject, 'viewer'])
      await put(id, owner, ada, 'developer')
      assert.deepEqual(await remove(id, owner, ada), { status: 204 })
      assert.equal(await roleOf(id, ada), undefined)
      const events = (await world.audit(id)).filter(({ resourceKind }) => resourceKind === 'member')
      assert.deepEqual(
        events.map(({ action, resourceId, metadata }) => [
          action,
          resourceId,
          metadata['role'],
          metadata['previous_role'],
        ]),
        [
          ['put_member', ada.subject, 'viewer', null],
          ['put_member', ada.subject, 'developer', 'viewer'],
          ['remove_member', ada.subject, 'developer', undefined],
        ],
      )
      await assert.rejects(remove(id, owner, ada), isCode('member_not_found'))
    })

    it('must be users', async () => {
      const { id, owner } = await organization()
      for (const subject of ['user:usr_01234567890123456789ab', 'nobody', ''])
        await assert.rejects(put(id, owner, subject, 'viewer'), isCode('user_not_found'))
    })

    it('are named by their mail address too, in any case', async () => {
      const { id, owner } = await organization()
      const made = await makeUser(world.plane.database, {
        email: `Ada.${id}@Example.com`,
        name: '',
        isOperator: false,
        tokenName: 'test',
      })
      const added = bodyOf(await put(id, owner, `ADA.${id}@example.COM`, 'viewer'))
      assert.deepEqual([added.user_id, added.email], [made.userId, `ada.${id}@example.com`])
      await assert.rejects(put(id, owner, 'nobody@example.com', 'viewer'), isCode('user_not_found'))
      const drop = (as: Principal, subject: string) =>
        removeMember(world.deps, world.call(as), { organizationId: id, subject })
      const ada: Principal = { ...owner, userId: made.userId, subject: `user:${made.userId}`, role: 'viewer' }
      // Whether an address has an account is not told to those who may not add it.
      for (const address of ['nobody@example.com', owner.userId!])
        await assert.rejects(drop({ ...ada, isOperator: false }, address), isCode('forbidden'))
      await assert.rejects(drop(owner, 'nobody@example.com'), isCode('member_not_found'))
      await drop(ada, `ada.${id}@example.com`)
      const events = (await world.audit(id)).filter(({ resourceKind }) => resourceKind === 'member')
      assert.deepEqual(
        events.map(({ action, resourceId }) => [action, resourceId]),
        [
          ['put_member', ada.subject],
          ['remove_member', ada.subject],
        ],
      )
    })

    it('owners are made, changed and removed by owners only', async () => {
      const { id, owner } = await organization()
      const second = await join(id, owner, 'owner')
      const admin = await join(id, owner, 'admin')
      const needsOwner = isCode('forbidden', { required_role: 'owner' })
      await assert.rejects(put(id, admin, admin, 'owner'), needsOwner)
      await assert.rejects(put(id, admin, await world.user(), 'owner'), needsOwner)
      await assert.rejects(put(id, admin, second, 'viewer'), needsOwner)
      await assert.rejects(remove(id, admin, second), needsOwner)
      await put(id, admin, await join(id, owner, 'viewer'), 'admin')
      await put(id, owner, second, 'viewer')
      assert.equal(await roleOf(id, second), 'viewer')
    })

    it('may leave, whatever their role; others are removed by admins', async () => {
      const { id, owner } = await organization()
      const viewer = await join(id, owner, 'viewer')
      await assert.rejects(remove(id, viewer, await join(id, owner, 'viewer')), isCode('forbidden'))
      await remove(id, viewer, viewer)
      const second = await join(id, owner, 'owner')
      await remove(id, second, second)
    })

    it('keep an owner: the last one can neither leave nor step down', async () => {
      const { id, owner } = await organization()
      await assert.rejects(remove(id, owner, owner), isCode('last_owner'))
      await assert.rejects(put(id, owner, owner, 'admin'), isCode('last_owner'))
      await put(id, owner, owner, 'owner')
      assert.equal(await roleOf(id, owner), 'owner')
    })

    it('keep an owner also when all owners leave at the same moment', async () => {
      for (let round = 0; round < sized(5, 50); round++) {
        const { id, owner } = await organization()
        const owners = [owner, await join(id, owner, 'owner'), await join(id, owner, 'owner')]
        const results = await Promise.allSettled(
          owners.map((each, n) => (n % 2 === 0 ? remove(id, each, each) : put(id, each, each, 'viewer'))),
        )
        const refused = results.filter(result => result.status === 'rejected')
        assert.equal(refused.length, 1)
        isCode('last_owner')(refused[0]?.reason)
      }
    })

    it('lose the agent tokens that are bound to the organization, and only those', async () => {
      const { id, owner } = await organization()
      const ada = await join(id, owner, 'developer')
      await world.plane.database.rows(
        `insert into tokens (id, user_id, kind, name, digest, token_prefix, scopes, organization_id)
         select 'tok_01234567890123456' || lpad($2::text, 4, '0') || n, $1, kind, 'x', sha256(($2::text || n)::bytea), 'x',
           case kind when 'agent' then array['read'] end, org
         from (values (1, 'agent', $3), (2, 'agent', 'acme'), (3, 'personal', null)) as t (n, kind, org)`,
        [ada.userId, serial, id],
      )
      await remove(id, owner, ada)
      const rows = await world.plane.database.rows<{ org: string | null }>(
        `select organization_id as org from tokens where user_id = $1 and revoked_at is not null`,
        [ada.userId],
      )
      assert.deepEqual(rows, [{ org: id }])
    })
  })

  describe('projects', () => {
    const put = (as: Principal, organizationId: string, more: Partial<PutProjectBody> = {}, projectId = 'shop') =>
      putProject(world.deps, world.call(as), {
        organizationId,
        projectId,
        body: { region: 'eu', postgres_major: 17, ...more },
      })
    const drop = (as: Principal, organizationId: string, projectId = 'shop') =>
      deleteProject(world.deps, world.call(as), { organizationId, projectId })

    it('are created and updated by developers, and keep what is not given', async () => {
      const { id, owner } = await organization()
      const developer = await join(id, owner, 'developer')
      const made = bodyOf(await put(developer, id))
      assert.deepEqual([made.region, made.postgres_major, made.protect_production], ['eu', 17, false])
      await put(owner, id, { protect_production: true })
      const moved = bodyOf(await put(developer, id, { region: 'us' }))
      assert.deepEqual([moved.region, moved.protect_production, moved.created_at], ['us', true, made.created_at])
      const events = (await world.audit(id)).filter(({ action }) => action === 'put_project')
      assert.deepEqual(
        events.map(({ metadata }) => [metadata['created'], metadata['region'], metadata['protect_production']]),
        [
          [true, 'eu', false],
          [false, 'eu', true],
          [false, 'us', true],
        ],
      )
    })

    it('are protected and unprotected by admins only', async () => {
      const { id, owner } = await organization()
      const developer = await join(id, owner, 'developer')
      const needsAdmin = isCode('forbidden', { required_role: 'admin' })
      await assert.rejects(put(developer, id, { protect_production: true }), needsAdmin)
      await put(await join(id, owner, 'admin'), id, { protect_production: true })
      await assert.rejects(put(developer, id, { protect_production: false }), needsAdmin)
      await put(developer, id, { protect_production: true })
    })

    it('stay protected when a developer puts them at the very moment in which an admin makes them so', async () => {
      const { id, owner } = await organization()
      const developer = await join(id, owner, 'developer')
      const other = world.secondProcess()
      for (let round = 0; round < sized(20, 200); round++) {
        const projectId = `guarded-${round}`
        // Every other one exists no more.
        if (round % 2 === 1) {
          await put(owner, id, {}, projectId)
          await drop(owner, id, projectId)
        }
        await Promise.all([
          put(owner, id, { protect_production: true }, projectId),
          putProject(other, world.call(developer), {
            organizationId: id,
            projectId,
            body: { region: 'eu', postgres_major: 17 },
          }),
        ])
        assert.equal((await findProject(world.plane.database, id, projectId))?.protectProduction, true, `${round}`)
      }
      const made = (await world.audit(id)).filter(({ metadata }) => metadata['created'] === true)
      assert.equal(made.length, sized(30, 300))
    })

    it('keep to the cap of the plan, also when sixteen come at once', async () => {
      const { id, owner } = await organization()
      const plan = { ...world.deps.settings.plan, caps: { projectsPerOrganization: 3 } }
      const deps = { ...world.deps, settings: { ...world.deps.settings, plan } }
      const results = await Promise.allSettled(
        Array.from({ length: 16 }, (_, n) =>
          putProject(deps, world.call(owner), {
            organizationId: id,
            projectId: `project-${n}`,
            body: { region: 'eu', postgres_major: 17 },
          }),
        ),
      )
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 3)
      for (const result of results)
        if (result.status === 'rejected') isCode('quota_exceeded', { limit: 3 })(result.reason)
    })

    it('are deleted only without environments; their history stays, and the id begins anew', async () => {
      const { id, owner } = await organization()
      const path = { ...pathOf('pr-1'), organizationId: id }
      await put(owner, id)
      const body = createBody('pr-1', { organization_id: id })
      const creation = bodyOf(await createEnvironment(world.deps, world.call(owner), body))
      await assert.rejects(drop(owner, id), isCode('project_has_environments', { environments: 1 }))
      await deleteEnvironment(world.deps, world.call(owner), path)
      assert.deepEqual(await drop(owner, id), { status: 204 })
      assert.equal(await findProject(world.plane.database, id, 'shop'), undefined)
      assert.equal(await findEnvironment(world.plane.database, path), undefined)
      assert.ok(await findOperation(world.plane.database, id, creation.id))
      await assert.rejects(drop(owner, id), isCode('project_not_found'))
      await assert.rejects(createEnvironment(world.deps, world.call(owner), body), isCode('project_not_found'))
      await put(owner, id)
      assert.equal(await findEnvironment(world.plane.database, path), undefined)
      await createEnvironment(world.deps, world.call(owner), body)
    })

    it('are never deleted under an environment that is being created', async () => {
      const { id, owner } = await organization()
      for (let round = 0; round < sized(10, 100); round++) {
        const projectId = `project-${round}`
        await put(owner, id, {}, projectId)
        const [created, deleted] = await Promise.allSettled([
          createEnvironment(
            world.deps,
            world.call(owner),
            createBody('pr-1', { organization_id: id, project_id: projectId }),
          ),
          drop(owner, id, projectId),
        ])
        assert.notEqual(created.status, deleted.status)
        if (created.status === 'rejected') isCode('project_not_found')(created.reason)
        if (deleted.status === 'rejected') isCode('project_has_environments')(deleted.reason)
      }
    })
  })
})
