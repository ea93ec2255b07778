/** Members: users with a role in an organization. */
import { z } from 'zod'
import { organizationParams, role } from './organizations.ts'
import { defineRoute } from './route.ts'
import { isoTime, nextCursor, organizationId, pageQuery, text } from './scalars.ts'

const subject = text(1, 255).meta({
  description: 'The subject that audit events name, `user:<id>`',
  example: 'user:usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
})

/** A member of an organization. */
export const memberRecord = z
  .object({
    organization_id: organizationId,
    user_id: z.string().meta({ description: 'Id of the user', example: 'usr_06dm3qz5hx7n0c8k2v4r9w1tbe' }),
    subject,
    email: z.string().nullable().meta({ description: 'Mail address, if there is one', example: 'ada@example.com' }),
    name: z.string().meta({ description: 'Display name', example: 'Ada' }),
    sso_subject: z.string().nullable().meta({
      description: 'Who they are to the organization’s own identity provider; null: not an account of single sign-on',
      example: null,
    }),
    role,
    created_at: isoTime,
  })
  .meta({ id: 'Member' })
export type MemberRecord = z.infer<typeof memberRecord>

const memberParams = z.strictObject({
  org: organizationId,
  // An address: 64 characters before the @, 255 behind it.
  subject: text(1, 320).meta({
    description:
      'Who: the subject `user:<id>`, the bare id, the mail address of the account in any case, or `sso:<sub>` for somebody whom the organization’s own identity provider knows',
    example: 'ada@example.com',
  }),
})

export const putMemberBody = z.strictObject({ role })

const example = {
  organization_id: 'acme',
  user_id: 'usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
  subject: 'user:usr_06dm3qz5hx7n0c8k2v4r9w1tbe',
  email: 'ada@example.com',
  name: 'Ada',
  sso_subject: null,
  role: 'developer',
  created_at: '2026-11-27T10:00:00.000Z',
}

export const memberRoutes = {
  listMembers: defineRoute({
    operationId: 'listMembers',
    method: 'get',
    path: '/v1/organizations/{org}/members',
    tag: 'Members',
    summary: 'List the members of an organization',
    policy: 'organization.read',
    organization: 'path',
    params: organizationParams,
    query: pageQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The members, oldest first',
      body: z.object({ members: z.array(memberRecord), next_cursor: nextCursor }),
    },
    errors: [],
    examples: { response: { members: [example], next_cursor: null } },
  }),
  putMember: defineRoute({
    operationId: 'putMember',
    method: 'put',
    path: '/v1/organizations/{org}/members/{subject}',
    tag: 'Members',
    summary: 'Add a member or change a role',
    description: 'Only an owner may make an owner or change one. The last owner keeps the role.',
    policy: 'member.write',
    organization: 'path',
    params: memberParams,
    body: putMemberBody,
    idempotency: 'required',
    success: { status: 200, description: 'The member', body: memberRecord },
    errors: ['user_not_found', 'last_owner'],
    examples: { request: { role: 'developer' }, response: example },
  }),
  removeMember: defineRoute({
    operationId: 'removeMember',
    method: 'delete',
    path: '/v1/organizations/{org}/members/{subject}',
    tag: 'Members',
    summary: 'Remove a member',
    description: 'Takes effect with the next request. A member may leave; only an owner may remove an owner.',
    policy: 'member.remove',
    organization: 'path',
    params: memberParams,
    idempotency: 'required',
    success: { status: 204, description: 'The member is removed' },
    errors: ['member_not_found', 'last_owner'],
    examples: {},
  }),
}
