/** Statistics of tables for the planner, as autovacuum keeps them where it is not off. */
import pg from 'pg'

const FIRST_MS = 500

/**
 * Gathers them again and again, ever less often. Statements are prepared when tables are empty, and their plans stay until somebody
 * has looked at the tables: with thousands of rows in them each would read all.
 * @param url - of the owner of the tables
 * @returns ends it
 */
export const keepStatisticsFresh = async (url: string): Promise<() => Promise<void>> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  let running: Promise<unknown> = Promise.resolve()
  let timer: NodeJS.Timeout
  const after = (ms: number): void => {
    timer = setTimeout(() => {
      running = client.query('analyze').finally(() => after(ms * 2))
    }, ms)
  }
  after(FIRST_MS)
  return async () => {
    await running
    clearTimeout(timer)
    await client.end()
  }
}
