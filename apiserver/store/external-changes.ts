/** What was noticed and recorded without anybody having asked the API for it: each (uid, generation) once. */
import type { Sql } from './sql.ts'

const INSERT = `insert into external_changes (uid, generation) values ($1, $2) on conflict do nothing
  returning generation`
/** Notes that a change is being recorded. false: it was recorded before. */
export const insertExternalChange = async (sql: Sql, uid: string, generation: number): Promise<boolean> =>
  (await sql.row(INSERT, [uid, generation])) !== undefined
