/** Reading the objects and the log of their changes: each function is one statement, and so one snapshot. */
import type { Selector } from '../store/resource-store.ts'
import { OBJECT_COLUMNS, type ObjectRow } from './object-row.ts'
import type { StorePool } from './store-pool.ts'

/** A change as logged: the object afterwards, and its labels before (null for a new one). */
export interface ChangeRow extends ObjectRow {
  readonly type: 'added' | 'modified' | 'deleted'
  readonly previous_labels: Readonly<Record<string, string>> | null
}

/** Some changes after a version. `complete`: there are no more up to `head`. */
export interface ChangePage {
  readonly changes: readonly ChangeRow[]
  /** The newest version in the snapshot, of whatever resource. */
  readonly head: bigint
  /** Changes up to this version may be gone from the log. */
  readonly compacted: bigint
  readonly complete: boolean
}

const PAGE_SIZE = 500

// The log may be empty after a compaction; then the mark is the newest version there ever was.
const HEAD = 'greatest(through, (select max(version) from changes)) as head'

/** What a selector means in SQL, from parameter $n on: null narrows nothing. */
const selectorValues = (selector: Selector | undefined): readonly [string | null, string | null] => [
  selector?.namespace ?? null,
  selector?.labels === undefined ? null : JSON.stringify(selector.labels),
]

/** All objects that match, and the version they were read at. */
export const readObjects = async (
  pool: StorePool,
  resource: string,
  selector: Selector | undefined,
): Promise<{ readonly rows: readonly ObjectRow[]; readonly head: string }> => {
  const rows = await pool.query<{ head: string } & (ObjectRow | { name: null })>({
    name: 'list',
    text: `select ${HEAD}, o.* from compaction left join (
             select ${OBJECT_COLUMNS} from objects where resource = $1
               and ($2::text is null or namespace = $2) and ($3::jsonb is null or labels @> $3)
           ) o on true order by o.namespace, o.name`,
    values: [resource, ...selectorValues(selector)],
  })
  return {
    head: rows[0]?.head ?? '0',
    rows: rows.filter((row): row is { head: string } & ObjectRow => row.name !== null),
  }
}

/** The next changes of a resource after a version, those that matched or match the selector's labels. */
export const readChanges = async (
  pool: StorePool,
  resource: string,
  after: bigint,
  selector: Selector | undefined,
): Promise<ChangePage> => {
  const rows = await pool.query<{ head: string; through: string } & (ChangeRow | { type: null })>({
    name: 'changes',
    text: `select ${HEAD}, through, c.* from compaction left join (
             select type, previous_labels, ${OBJECT_COLUMNS} from changes where version > $2 and resource = $1
               and ($3::text is null or namespace = $3)
               and ($4::jsonb is null or labels @> $4 or previous_labels @> $4)
             order by version limit ${PAGE_SIZE}
           ) c on true order by c.version`,
    values: [resource, after, ...selectorValues(selector)],
  })
  const changes = rows.filter((row): row is { head: string; through: string } & ChangeRow => row.type !== null)
  return {
    changes,
    head: BigInt(rows[0]?.head ?? 0),
    compacted: BigInt(rows[0]?.through ?? 0),
    complete: changes.length < PAGE_SIZE,
  }
}
