import { DomainError } from '../../lib/errors/domain-error.ts'
import { countOtherOwners } from '../store/memberships.ts'
import type { Sql } from '../store/sql.ts'
import { findUserIdByEmail } from '../store/users.ts'

/**
 * The user that a subject names: `user:<id>`, the bare id, or the mail address of an account, in any case. An id that
 * nobody has is answered as it is; an address that nobody has is undefined.
 */
export const userIdOf = async (sql: Sql, subject: string): Promise<string | undefined> => {
  if (subject.includes('@')) return findUserIdByEmail(sql, subject.toLowerCase())
  return subject.startsWith('user:') ? subject.slice(5) : subject
}

/**
 * Refuses to take the role of the last owner. Hold the organization's lock: two owners who leave at once would otherwise
 * each see the other.
 * @throws DomainError `last_owner`
 */
export const keepAnOwner = async (sql: Sql, organizationId: string, userId: string): Promise<void> => {
  if ((await countOtherOwners(sql, organizationId, userId)) === 0)
    throw new DomainError('last_owner', 'This is the last owner; make another member owner first')
}
