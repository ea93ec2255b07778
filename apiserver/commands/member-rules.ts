import { DomainError } from '../../lib/errors/domain-error.ts'
import { ssoSubjectOf } from '../../lib/model/subject.ts'
import { findUserIdByIdentity } from '../store/identities.ts'
import { countOtherOwners } from '../store/memberships.ts'
import type { Sql } from '../store/sql.ts'
import { findSsoUserId } from '../store/sso-accounts.ts'
import { findSso } from '../store/sso-configurations.ts'
import { findUserIdByEmail } from '../store/users.ts'

const USER_ID = /^usr_[0-9a-z]{20,40}$/

/**
 * The user that a subject names: `user:<id>`, the bare id, `sso:<sub>` for somebody whom the organization's own identity provider
 * knows, or the mail address of an account, in any case. Where an identity provider says who people are, its subjects instead of
 * addresses, which prove nothing there. An id that nobody has is
 * answered as it is; an address or a subject that nobody has is undefined.
 */
export const userIdOf = async (
  sql: Sql,
  { issuer }: { readonly issuer?: string | undefined },
  subject: string,
  organizationId: string,
): Promise<string | undefined> => {
  const ssoSubject = ssoSubjectOf(subject)
  if (ssoSubject !== undefined) {
    const sso = await findSso(sql, organizationId)
    return sso && findSsoUserId(sql, { organizationId, issuer: sso.issuer, subject: ssoSubject })
  }
  if (subject.startsWith('user:')) return subject.slice(5)
  if (issuer !== undefined) {
    const known = await findUserIdByIdentity(sql, { issuer, subject })
    return known ?? (USER_ID.test(subject) ? subject : undefined)
  }
  return subject.includes('@') ? findUserIdByEmail(sql, subject.toLowerCase()) : subject
}

/**
 * Refuses to take the role of the last owner. Accounts of single sign-on do not count: whoever can change or remove the provider
 * must have a way in without it. Hold the organization's lock: two owners who leave at once would otherwise
 * each see the other.
 * @throws DomainError `last_owner`
 */
export const keepAnOwner = async (sql: Sql, organizationId: string, userId: string): Promise<void> => {
  if ((await countOtherOwners(sql, organizationId, userId)) === 0)
    throw new DomainError(
      'last_owner',
      'This is the last owner who needs no single sign-on; make another member owner first',
    )
}
