/** Everything in the control-plane database that is sealed with the master key: proving the key, and changing it. */
import { randomBytes } from 'node:crypto'
import type { Sealer, SealPlace } from '../../lib/credentials/seal.ts'
import { SealError } from '../../lib/credentials/seal.ts'
import { CANARY, CANARY_TEXT } from '../../runtime/embedded/seal-canary.ts'
import type { Database } from './database.ts'
import { secretPlace } from './login/second-factors.ts'
import { letterPlace } from './mail-outbox.ts'
import { ssoSecretPlace } from './sso-configurations.ts'

const BATCH = 200
const ROOT_BYTES = 32
const ROOT: SealPlace = { table: 'derivation_root', column: 'sealed', rowId: 'root', version: 1n }

interface SealedRow {
  readonly id: string
  readonly version: number
  readonly sealed: string
}

interface SealedColumn {
  /** Rows that another key sealed: $1 is the start of what the current one seals. */
  readonly find: string
  /** Only what was read is replaced: whoever sealed it anew meanwhile did so with the current key. */
  readonly replace: string
  readonly placeOf: (row: SealedRow) => SealPlace
}

const COLUMNS: readonly SealedColumn[] = [
  {
    find: `select user_id as id, version, sealed_secret as sealed from second_factors
      where not starts_with(sealed_secret, $1) limit ${BATCH}`,
    replace: 'update second_factors set sealed_secret = $3 where user_id = $1 and sealed_secret = $2',
    placeOf: ({ id, version }) => secretPlace(id, version),
  },
  {
    find: `select id, 1 as version, sealed_secret as sealed from mail_outbox
      where sealed_secret is not null and not starts_with(sealed_secret, $1) limit ${BATCH}`,
    replace: 'update mail_outbox set sealed_secret = $3 where id = $1 and sealed_secret = $2',
    placeOf: ({ id }) => letterPlace(id),
  },
  {
    find: `select revision as id, 1 as version, sealed_secret as sealed from organization_sso
      where not starts_with(sealed_secret, $1) limit ${BATCH}`,
    replace: 'update organization_sso set sealed_secret = $3 where revision = $1 and sealed_secret = $2',
    placeOf: ({ id }) => ssoSecretPlace(id),
  },
  {
    find: `select 'root' as id, 1 as version, sealed from derivation_root where not starts_with(sealed, $1)`,
    replace: `update derivation_root set sealed = $3 where $1 = 'root' and sealed = $2`,
    placeOf: () => ROOT,
  },
]

const PROVE = `insert into seal_canary as canary (sealed) values ($1)
  on conflict (one_row) do update set sealed = canary.sealed returning sealed`
/** @throws SealError when none of the keys is the one that sealed what is there */
export const proveSealer = async (database: Database, sealer: Sealer): Promise<void> => {
  const fresh = sealer.seal(CANARY, CANARY_TEXT)
  const row = await database.transaction(sql => sql.row<{ sealed: string }>(PROVE, [fresh]))
  if (row === undefined || sealer.open(CANARY, row.sealed) !== CANARY_TEXT)
    throw new SealError('The canary row does not say what it should')
}

const OPEN_ROOT = `insert into derivation_root as root (sealed) values ($1)
  on conflict (one_row) do update set sealed = root.sealed returning sealed`
/**
 * The secret from which keys derive that have to outlive a master key: 32 bytes, drawn by the first server that asks, the same
 * for all. @throws SealError when none of the keys is the one that sealed it
 */
export const openDerivationRoot = async (database: Database, sealer: Sealer): Promise<Buffer> => {
  const fresh = sealer.seal(ROOT, randomBytes(ROOT_BYTES).toString('base64'))
  const row = await database.transaction(sql => sql.row<{ sealed: string }>(OPEN_ROOT, [fresh]))
  if (row === undefined) throw new SealError('The root of derived keys could not be kept')
  return Buffer.from(sealer.open(ROOT, row.sealed), 'base64')
}

const FIND_CANARY = 'select sealed from seal_canary'
const REPLACE_CANARY = 'update seal_canary set sealed = $2 where sealed = $1'
/**
 * Wraps every sealed row with the current master key, in batches beside servers that serve, and answers how many. The canary
 * goes last: until then a server without the earlier key does not start. May be broken off and begun again.
 */
export const rewrapSealedRows = async (database: Database, sealer: Sealer): Promise<number> => {
  const current = `v1.${sealer.kid}.`
  let done = 0
  for (const { find, replace, placeOf } of COLUMNS)
    for (;;) {
      const rows = await database.rows<SealedRow>(find, [current])
      if (rows.length === 0) break
      await database.transaction(async sql => {
        for (const row of rows) await sql.rows(replace, [row.id, row.sealed, sealer.rewrap(placeOf(row), row.sealed)])
      })
      done += rows.length
    }
  const canary = await database.row<{ sealed: string }>(FIND_CANARY)
  if (canary !== undefined && !canary.sealed.startsWith(current))
    await database.transaction(sql => sql.rows(REPLACE_CANARY, [canary.sealed, sealer.rewrap(CANARY, canary.sealed)]))
  return done
}
