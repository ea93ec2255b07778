import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createSealer, SealError } from '../../lib/credentials/seal.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { sized } from '../../testkit/full.ts'
import { secretPlace } from './login/second-factors.ts'
import { proveSealer, rewrapSealedRows } from './sealed-rows.ts'

describe('sealed rows', () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)]
  const before_ = createSealer({ current: old })
  const both = createSealer({ current: fresh, previous: [old] })
  const after_ = createSealer({ current: fresh })
  let plane: ControlPlaneDatabase
  before(async () => {
    plane = await controlPlaneDatabase()
  })
  after(() => plane.database.stop())

  it('are wrapped with another master key while they are read, and the old one can go then and not before', async () => {
    const { database } = plane
    const ids = Array.from({ length: sized(450, 5000) }, () => newId('usr'))
    await proveSealer(database, before_)
    await assert.rejects(proveSealer(database, after_), SealError)
    await database.rows(
      `insert into users (user_id, name, email) select i, i, i || '@example.com' from unnest($1::text[]) i`,
      [ids],
    )
    const sealed = ids.map(id => before_.seal(secretPlace(id, 3), id))
    await database.rows(
      `insert into second_factors (user_id, sealed_secret, version, enabled_at) select i, s, 3, now() from unnest($1::text[], $2::text[]) as t (i, s)`,
      [ids, sealed],
    )
    // Whoever knows both opens each row, whichever key it is under.
    const readAll = async (sealer: typeof both): Promise<void> => {
      const rows = await database.rows<{ id: string; sealed: string }>(
        'select user_id as id, sealed_secret as sealed from second_factors',
      )
      for (const row of rows) assert.equal(sealer.open(secretPlace(row.id, 3), row.sealed), row.id)
      assert.equal(rows.length, ids.length)
    }
    const [count] = await Promise.all([rewrapSealedRows(database, both), readAll(both), readAll(both)])
    assert.equal(count, ids.length)
    await proveSealer(database, after_)
    await readAll(after_)
    await assert.rejects(proveSealer(database, before_), SealError)
    assert.equal(await rewrapSealedRows(database, both), 0)
  })
})
