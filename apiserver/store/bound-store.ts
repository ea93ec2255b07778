/** The resource store that the rows are about, remembered when it was first met. */
import type { Sql } from './sql.ts'

/** Binds these rows to a store if they are bound to none yet; answers the identity that they are bound to. */
export const bindStore = async (sql: Sql, identity: string): Promise<string> => {
  await sql.row('insert into bound_store (identity) values ($1) on conflict do nothing', [identity])
  const bound = await sql.row<{ identity: string }>('select identity from bound_store')
  return bound?.identity ?? identity
}
