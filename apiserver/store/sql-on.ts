/** Statements on a connection, prepared once each. */
import pg from 'pg'
import { readDriverError } from './database-error.ts'
import type { Sql } from './sql.ts'

/** bigint columns here are counters: they stay far below 2^53, and a number is what everybody computes with. */
const parseInt8 = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError('A bigint of the database does not fit a number')
  return value
}
const TYPES = new pg.TypeOverrides()
TYPES.setTypeParser(pg.types.builtins.INT8, parseInt8)

const statementNames = new Map<string, string>()
const nameOf = (text: string): string => {
  let name = statementNames.get(text)
  if (name === undefined) statementNames.set(text, (name = `s${statementNames.size + 1}`))
  return name
}

/** The statements of a connection, for whoever brings a client of their own (in a transaction, say). */
export const sqlOn = (client: pg.ClientBase): Sql => {
  const rows = async <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> => {
    try {
      return (await client.query({ name: nameOf(text), text, values: [...values], types: TYPES })).rows as Row[]
    } catch (error) {
      throw readDriverError(error)
    }
  }
  return { rows, row: async <Row>(text: string, values?: readonly unknown[]) => (await rows<Row>(text, values))[0] }
}
