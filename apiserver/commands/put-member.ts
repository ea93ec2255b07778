import { DomainError } from '../../lib/errors/domain-error.ts'
import type { Role } from '../../lib/model/credential.ts'
import { isUsableSubject, ssoSubjectOf } from '../../lib/model/subject.ts'
import { organizationNotFound, requireRole } from '../auth/authorize.ts'
import type { MemberRecord } from '../contract/members.ts'
import { findMember, putMembership } from '../store/memberships.ts'
import { lockOrganization } from '../store/organizations.ts'
import type { Sql } from '../store/sql.ts'
import { findSso } from '../store/sso-configurations.ts'
import { findUser } from '../store/users.ts'
import { memberView } from '../views/member-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { ensureIdentity } from './ensure-identity.ts'
import { execute } from './execute.ts'
import { keepAnOwner, userIdOf } from './member-rules.ts'
import { ensureSsoAccount } from './sso/ensure-sso-account.ts'

export interface PutMemberInput {
  readonly organizationId: string
  /** `user:<id>`, the bare id, a mail address, or `sso:<sub>`. */
  readonly subject: string
  readonly role: Role
}

const userNotFound = (): DomainError => new DomainError('user_not_found', 'There is no user with this subject')

/** A subject of an identity provider that nobody has seen: the account waits for its first sign-in. */
const awaited = async (
  sql: Sql,
  { settings }: CommandDependencies,
  call: Call,
  subject: string,
  organizationId: string,
): Promise<string | undefined> => {
  const ssoSubject = ssoSubjectOf(subject)
  if (ssoSubject !== undefined) {
    const sso = await findSso(sql, organizationId)
    const identity = { organizationId, subject: ssoSubject, name: ssoSubject }
    return sso && ensureSsoAccount(sql, call, { ...identity, issuer: sso.issuer }).then(({ userId }) => userId)
  }
  return settings.issuer === undefined || !isUsableSubject(subject)
    ? undefined
    : ensureIdentity(sql, call, { issuer: settings.issuer, subject, name: subject })
}

/** Whether a user can be a member: an account of single sign-on is of its own organization alone. */
const mayJoin = async (sql: Sql, userId: string, organizationId: string): Promise<boolean> => {
  const user = await findUser(sql, userId)
  return user !== undefined && (user.ssoOrganizationId === null || user.ssoOrganizationId === organizationId)
}

/**
 * Adds a member or changes their role. Owners are made and changed by owners only.
 * @throws DomainError `user_not_found`, `forbidden`, `last_owner`
 */
export const putMember = (
  deps: CommandDependencies,
  call: Call,
  { organizationId, subject, role }: PutMemberInput,
): Promise<Reply<200, MemberRecord>> =>
  execute(deps, call, async sql => {
    if ((await lockOrganization(sql, organizationId)) === undefined) throw organizationNotFound()
    const userId =
      (await userIdOf(sql, deps.settings, subject, organizationId)) ??
      (await awaited(sql, deps, call, subject, organizationId))
    if (userId === undefined) throw userNotFound()
    const before = await findMember(sql, organizationId, userId)
    if (role === 'owner' || before?.role === 'owner') requireRole(call, 'owner')
    if (before === undefined && !(await mayJoin(sql, userId, organizationId))) throw userNotFound()
    if (before?.role === 'owner' && role !== 'owner') await keepAnOwner(sql, organizationId, userId)
    const member = await putMembership(sql, organizationId, userId, role)
    return {
      status: 200,
      body: memberView(member),
      audit: [
        callEvent(
          call,
          'put_member',
          { organizationId, resourceKind: 'member', resourceId: `user:${userId}` },
          { role, previous_role: before?.role ?? null },
        ),
      ],
    }
  })
