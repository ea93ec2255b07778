import assert from 'node:assert/strict'
import { Tenant } from '../tenant.ts'
import type { World } from '../world.ts'

/** An id used over and over is a new database each time, and what was to be kept of the earlier ones is all there. */
export const retainAndReuse = async (world: World, times: number): Promise<void> => {
  const tenant = await Tenant.create(world)
  const kept: string[] = []
  for (let round = 1; round <= times; round++) {
    await tenant.createEnvironment('again', { deletion_policy: 'retain' })
    await tenant.sql('again', async session => {
      const tables = await session.rows(
        `select tablename from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
      )
      assert.deepEqual(tables, [], `Round ${round} found what an earlier one left`)
      await session.rows(`create table round_${round} as select generate_series(1, 100) n`)
    })
    const { result } = await tenant.run('delete', 'again')
    assert.equal(typeof result?.['retained_at'], 'string', JSON.stringify(result))
    kept.push(result!['retained_at'] as string)
  }
  assert.equal(new Set(kept).size, times)
  for (const place of kept) assert.ok(await world.isKept(place), `${place} is gone`)
}
