import { DomainError } from '../../lib/errors/domain-error.ts'
import { countOtherOwners } from '../store/memberships.ts'
import type { Sql } from '../store/sql.ts'

/** The user that a subject names: `user:<id>`, or the bare id. */
export const userIdOf = (subject: string): string => (subject.startsWith('user:') ? subject.slice(5) : subject)

/**
 * Refuses to take the role of the last owner. Hold the organization's lock: two owners who leave at once would otherwise
 * each see the other.
 * @throws DomainError `last_owner`
 */
export const keepAnOwner = async (sql: Sql, organizationId: string, userId: string): Promise<void> => {
  if ((await countOtherOwners(sql, organizationId, userId)) === 0)
    throw new DomainError('last_owner', 'This is the last owner; make another member owner first')
}
