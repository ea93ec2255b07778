import assert from 'node:assert/strict'
import fc from 'fast-check'
import { isCode } from '../../testkit/assert-code.ts'
import { type CommandWorld, commandWorld } from '../../testkit/command-world.ts'
import { sized } from '../../testkit/full.ts'
import { listEnvironments } from './environments.ts'
import { decodeCursor, toPage } from './page.ts'

describe('pages', () => {
  it('lead through all rows once, in order, whatever the page size and however many share a moment', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5), { maxLength: 40 }), fc.integer({ min: 1, max: 10 }), (moments, limit) => {
        const all = moments
          .map((moment, n) => ({ createdAt: new Date(moment), id: `id-${String(n).padStart(3, '0')}` }))
          .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1))
        const seen: unknown[] = []
        for (let cursor: string | undefined; ; ) {
          const after = decodeCursor(cursor)
          const rest = all.filter(
            row =>
              after === undefined ||
              row.createdAt > after.createdAt ||
              (row.createdAt.getTime() === after.createdAt.getTime() && row.id > after.id),
          )
          const page = toPage(rest.slice(0, limit + 1), limit, row => row)
          assert.ok(page.items.length <= limit)
          seen.push(...page.items)
          if (page.nextCursor === null) break
          cursor = page.nextCursor
        }
        assert.deepEqual(seen, all)
      }),
      { numRuns: sized(100, 2000) },
    )
  })

  it('refuse a cursor that is none, without quoting it', () => {
    for (const cursor of [
      '',
      'x',
      'MTIz',
      Buffer.from('1.a b').toString('base64url'),
      Buffer.from('9999999999999999.a').toString('base64url'),
    ])
      assert.throws(() => decodeCursor(cursor), isCode('validation_failed'))
    fc.assert(
      fc.property(fc.string(), cursor => {
        try {
          decodeCursor(cursor)
        } catch (error) {
          isCode('validation_failed')(error)
        }
      }),
    )
  })

  describe('of environments', () => {
    let world: CommandWorld
    before(async () => (world = await commandWorld()))
    after(() => world.stop())

    it('show each once, oldest first, without deleted and replaced ones, also those of one moment', async () => {
      const { database } = world.plane
      await database.rows(
        `insert into projects (organization_id, project_id, region, postgres_major, namespace) values ('acme', 'other', 'eu', 17, 'n')`,
      )
      await database.rows(
        `insert into environments (organization_id, project_id, environment_id, kind, data_mode, region, postgres_major,
           deletion_policy, namespace, resource_name, created_at, phase, replaced_at)
         select 'acme', case when n % 5 = 0 then 'other' else 'shop' end, 'env-' || n, 'preview', 'sanitized', 'eu', 17, 'Delete', 'n', 'r' || n,
           timestamptz '2026-01-01' + make_interval(secs => n / 4), case when n % 7 = 0 then 'deleted' else 'ready' end,
           case when n % 11 = 0 then now() end
         from generate_series(1, 60) n`,
      )
      const numbers = Array.from({ length: 60 }, (_, n) => n + 1).filter(n => n % 7 !== 0 && n % 11 !== 0)
      for (const [project, expected] of [
        [undefined, numbers],
        ['other', numbers.filter(n => n % 5 === 0)],
      ] as const)
        for (const limit of [1, 3, 7, 200]) {
          const seen: { id: string; moment: number }[] = []
          for (let after: string | undefined; ; ) {
            const page = await listEnvironments(database, 'acme', project, { after, limit })
            seen.push(...page.items.map(row => ({ id: row.environmentId, moment: row.createdAt.getTime() })))
            if (page.nextCursor === null) break
            after = page.nextCursor
          }
          assert.equal(seen.length, expected.length)
          assert.deepEqual(new Set(seen.map(({ id }) => id)), new Set(expected.map(n => `env-${n}`)))
          assert.ok(seen.every(({ moment }, n) => n === 0 || moment >= (seen[n - 1]?.moment ?? 0)))
        }
    })

    it('answer validation_failed for a cursor of another list', async () => {
      const foreign = Buffer.from('1.not-a-uuid').toString('base64url')
      await assert.rejects(
        listEnvironments(world.plane.database, 'acme', undefined, { after: foreign, limit: 1 }),
        isCode('validation_failed'),
      )
    })
  })
})
