/** Keyset pages: rows after a point in (created_at, id) order, and an opaque cursor to the next ones. */
import { DomainError } from '../../lib/errors/domain-error.ts'

/** What a list is asked for: where to go on, as the caller got it, and how many at most. */
export interface PageRequest {
  readonly after?: string | undefined
  readonly limit: number
}

export interface Page<Row> {
  readonly items: readonly Row[]
  /** Give it as `after` to read on; null: there is no more. */
  readonly nextCursor: string | null
}

/** A place between rows. */
interface Keyset {
  readonly createdAt: Date
  readonly id: string
}

const CURSOR = /^(\d{1,15})\.([0-9a-z_-]{1,80})$/

const encodeCursor = (keyset: Keyset): string =>
  Buffer.from(`${keyset.createdAt.getTime()}.${keyset.id}`).toString('base64url')

/** The place that a cursor names. @throws DomainError `validation_failed` when it is none of ours */
export const decodeCursor = (cursor: string | undefined): Keyset | undefined => {
  if (cursor === undefined) return undefined
  const [, time, id] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []
  const createdAt = new Date(Number(time))
  if (time === undefined || id === undefined || Number.isNaN(createdAt.getTime()))
    throw new DomainError('validation_failed', 'The cursor is none that this list gave', {
      errors: [{ in: 'query', pointer: 'after', code: 'invalid_cursor', message: 'must be the next_cursor of a page' }],
    })
  return { createdAt, id }
}

/** A page from `limit + 1` rows: the one too many says that there are more, and is left out. */
export const toPage = <Row>(rows: readonly Row[], limit: number, keysetOf: (row: Row) => Keyset): Page<Row> => {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, nextCursor: rows.length > limit && last !== undefined ? encodeCursor(keysetOf(last)) : null }
}
