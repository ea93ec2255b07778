import assert from 'node:assert/strict'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, makeTeam, ORG } from '../../testkit/api-team.ts'

describe('organizations and members', () => {
  let api: TestApiServer
  let team: ApiTeam
  before(async () => {
    api = await startTestApiServer({ operator: false })
    team = await makeTeam(api)
  })
  after(() => api.stop())

  const member = (subject: string) => ({ org: ORG, subject })

  describe('happy', () => {
    it('putOrganization makes its creator the owner, and renames afterwards', async () => {
      const made = await team.owner.call('putOrganization', { params: { org: 'second' }, body: { name: 'Second' } })
      assert.deepEqual([made.status, made.body.name], [200, 'Second'])
      const renamed = await team.owner.call('putOrganization', { params: { org: 'second' }, body: { name: '2️⃣ nd' } })
      assert.deepEqual([renamed.body.name, renamed.body.created_at], ['2️⃣ nd', made.body.created_at])
      const seen = await team.owner.call('getOrganization', { params: { org: 'second' } })
      assert.deepEqual([seen.body.role, seen.body.name], ['owner', '2️⃣ nd'])
    })

    it('listOrganizations shows the caller’s own with their role, page by page', async () => {
      const first = await team.owner.call('listOrganizations', { query: { limit: 1 } })
      assert.equal(first.body.organizations.length, 1)
      const second = await team.owner.call('listOrganizations', {
        query: { limit: 1, after: first.body.next_cursor ?? '' },
      })
      assert.deepEqual(
        [...first.body.organizations, ...second.body.organizations].map(each => [each.organization_id, each.role]),
        [
          [ORG, 'owner'],
          ['second', 'owner'],
        ],
      )
      assert.equal(second.body.next_cursor, null)
      const viewers = await team.viewer.call('listOrganizations')
      assert.deepEqual(
        viewers.body.organizations.map(each => [each.organization_id, each.role]),
        [[ORG, 'viewer']],
      )
    })

    it('listMembers names every member once', async () => {
      const { body } = await team.viewer.call('listMembers', { params: { org: ORG } })
      assert.deepEqual(body.members.map(each => each.role).sort(), ['admin', 'developer', 'owner', 'viewer'])
      assert.ok(body.members.every(each => each.subject === `user:${each.user_id}`))
    })

    it('a role holds from the next request on, and so does its loss', async () => {
      const guest = await api.makeCaller('guest')
      const subject = `user:${guest.userId}`
      const see = async (): Promise<number> => (await guest.call('getOrganization', { params: { org: ORG } })).status
      assert.equal(await see(), 404)
      await team.admin.call('putMember', { params: member(subject), body: { role: 'viewer' } })
      assert.equal(await see(), 200)
      const left = await guest.call('removeMember', { params: member(subject) })
      assert.equal(left.status, 204)
      assert.equal(await see(), 404)
    })
  })

  describe('error', () => {
    it('putMember refuses users that are not there', async () => {
      const answer = await team.owner.call('putMember', { params: member('user:usr_nobody'), body: { role: 'viewer' } })
      assert.deepEqual([answer.status, answer.body.code], [404, 'user_not_found'])
    })

    it('removeMember refuses who is no member', async () => {
      const answer = await team.owner.call('removeMember', { params: member(`user:${team.outsider.userId}`) })
      assert.deepEqual([answer.status, answer.body.code], [404, 'member_not_found'])
    })

    it('the last owner keeps the role', async () => {
      const subject = `user:${team.owner.userId}`
      const demoted = await team.owner.call('putMember', { params: member(subject), body: { role: 'admin' } })
      assert.deepEqual([demoted.status, demoted.body.code], [409, 'last_owner'])
      const left = await team.owner.call('removeMember', { params: member(subject) })
      assert.deepEqual([left.status, left.body.code], [409, 'last_owner'])
    })

    it('two owners who leave at once do not leave nobody', async () => {
      const other = await api.makeCaller('other owner')
      await team.owner.call('putMember', { params: member(`user:${other.userId}`), body: { role: 'owner' } })
      const answers = await Promise.all(
        [team.owner, other].map(caller => caller.call('removeMember', { params: member(`user:${caller.userId}`) })),
      )
      assert.deepEqual(answers.map(answer => answer.status).sort(), [204, 409])
      const left = answers[0]?.status === 204 ? other : team.owner
      // Whoever stayed brings the team back for the tests below.
      await left.call('putMember', { params: member(`user:${team.owner.userId}`), body: { role: 'owner' } })
      assert.equal((await team.owner.call('getOrganization', { params: { org: ORG } })).body.role, 'owner')
    })

    for (const [why, body] of [
      ['no role', {}],
      ['an unknown role', { role: 'god' }],
      ['a user in the body', { role: 'viewer', user_id: 'usr_x' }],
    ] as const)
      it(`putMember refuses ${why}`, async () => {
        const answer = await team.owner.call('putMember', { params: member(`user:${team.viewer.userId}`), body })
        assert.deepEqual([answer.status, answer.body.code], [400, 'validation_failed'])
      })
  })

  describe('security', () => {
    it('only operators make organizations, and learn nothing of those of others', async () => {
      const make = (org: string) => team.developer.call('putOrganization', { params: { org }, body: { name: 'X' } })
      const [free, taken] = [await make('unheard-of'), await make('other')]
      assert.deepEqual([free.status, free.body.code], [403, 'forbidden'])
      assert.deepEqual([taken.status, taken.body.code], [free.status, free.body.code])
      const operators = await team.owner.call('putOrganization', { params: { org: 'other' }, body: { name: 'X' } })
      assert.deepEqual([operators.status, operators.body.code], [404, 'organization_not_found'])
    })

    it('everybody makes organizations where sign-up is open', async () => {
      const open = await startTestApiServer({ config: { publicSignup: true }, operator: false })
      try {
        const anybody = await open.makeCaller('anybody')
        const answer = await anybody.call('putOrganization', { params: { org: 'mine' }, body: { name: 'Mine' } })
        assert.equal(answer.status, 200)
      } finally {
        await open.stop()
      }
    })

    it('an admin makes no owner and touches none', async () => {
      const promote = await team.admin.call('putMember', {
        params: member(`user:${team.admin.userId}`),
        body: { role: 'owner' },
      })
      assert.deepEqual([promote.status, promote.body.code], [403, 'forbidden'])
      const owner = member(`user:${team.owner.userId}`)
      const demote = await team.admin.call('putMember', { params: owner, body: { role: 'developer' } })
      assert.deepEqual([demote.status, demote.body.code], [403, 'forbidden'])
      const remove = await team.admin.call('removeMember', { params: owner })
      assert.deepEqual([remove.status, remove.body.code], [403, 'forbidden'])
    })

    it('an operator without a membership sees nothing of an organization', async () => {
      const answer = await team.outsider.call('listMembers', { params: { org: ORG } })
      assert.deepEqual([answer.status, answer.body.code], [404, 'organization_not_found'])
    })
  })
})
