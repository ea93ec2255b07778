import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import pg from 'pg'
import { silentLog } from '../../../runtime/log/log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../../testkit/control-plane-database.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import type { LastUsed } from '../last-used.ts'
import { accountTokens } from './account-token.ts'
import { apiKeys } from './api-key.ts'
import type { Authenticator } from './authenticator.ts'
import { sessions } from './session.ts'

/** Rows of each kind: enough that reading all of them would be the worse plan. */
const ROWS = 3000
const SEED = `
  insert into users (user_id, name) select 'usr_' || lpad(n::text, 26, '0'), n from generate_series(1, ${ROWS}) n;
  insert into organizations (organization_id, name) select 'org-' || n, 'x' from generate_series(1, ${ROWS}) n;
  insert into memberships (organization_id, user_id, role)
    select 'org-' || (n + m) % ${ROWS} + 1, 'usr_' || lpad(n::text, 26, '0'), 'developer' from generate_series(1, ${ROWS}) n, generate_series(-1, 1) m;
  insert into tokens (id, user_id, kind, name, digest, token_prefix)
    select 'tok_' || lpad(n::text, 26, '0'), 'usr_' || lpad(n::text, 26, '0'), 'personal', 'x', sha256(n::text::bytea), 'x' from generate_series(1, ${ROWS}) n;
  insert into api_keys (id, organization_id, name, scopes, digest, key_prefix, created_by)
    select 'key_' || lpad(n::text, 26, '0'), 'org-' || n, 'x', '{read}', sha256(n::text::bytea), 'x', 'usr_' || lpad(n::text, 26, '0') from generate_series(1, ${ROWS}) n;
  insert into sessions (id, user_id, method, token_prefix, client_ip)
    select 'ses_' || lpad(n::text, 26, '0'), 'usr_' || lpad(n::text, 26, '0'), 'password', 'x', '::1' from generate_series(1, ${ROWS}) n;
  insert into session_tokens (digest, session_id, generation)
    select sha256(n::text::bytea), 'ses_' || lpad(n::text, 26, '0'), 0 from generate_series(1, ${ROWS}) n;
  analyze;`
const SUBJECT = 1234
const LIFE = { idle: 7200, absolute: 43_200, rotate: 900, rotationKey: Buffer.alloc(32) }

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly PlanNode[]
}

const nodesOf = (node: PlanNode): readonly PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

describe('who a credential speaks for, with their role', () => {
  let plane: ControlPlaneDatabase
  let client: pg.Client
  before(async () => {
    plane = await controlPlaneDatabase()
    client = new pg.Client({ connectionString: plane.url('postgres') })
    await client.connect()
    await client.query(SEED)
  })
  after(async () => {
    await client.end()
    await plane.database.stop()
  })

  const lastUsed = { mark: () => undefined } as unknown as LastUsed
  for (const [kind, open, relations] of [
    ['an account token', (sql: Sql) => accountTokens(sql, lastUsed), ['memberships', 'tokens', 'users']],
    ['an API key', (sql: Sql) => apiKeys(sql, lastUsed), ['api_keys']],
    [
      'a session',
      (sql: Sql) => sessions(sql as Database, lastUsed, LIFE, silentLog),
      ['memberships', 'session_tokens', 'sessions', 'users'],
    ],
  ] as const satisfies readonly (readonly [string, (sql: Sql) => Authenticator, readonly string[]])[])
    it(`takes one statement for ${kind}, which finds every row by an index`, async () => {
      const sent: { readonly text: string; readonly values: readonly unknown[] }[] = []
      const sql: Sql = {
        rows: async <Row>(text: string, values: readonly unknown[] = []) => {
          sent.push({ text, values })
          return plane.database.rows<Row>(text, values)
        },
        row: async <Row>(text: string, values?: readonly unknown[]) => (await sql.rows<Row>(text, values))[0],
      }
      const digest = createHash('sha256').update(String(SUBJECT)).digest()
      const found = await open(sql).find({ token: 'x', digest }, `org-${SUBJECT}`, {
        requestId: 'r',
        clientIp: '::1',
        userAgent: undefined,
      })
      assert.ok(found !== undefined)
      if (kind !== 'an API key') assert.equal(found.principal.role, 'developer')
      assert.equal(sent.length, 1)

      const { text = '', values = [] } = sent[0] ?? {}
      const { rows } = await client.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
        `explain (format json) ${text}`,
        [...values],
      )
      const nodes = rows[0]?.['QUERY PLAN'].flatMap(({ Plan }) => nodesOf(Plan)) ?? []
      const reads = nodes.filter(node => node['Relation Name'] !== undefined)
      assert.deepEqual(reads.map(node => node['Relation Name']).sort(), relations)
      for (const node of reads) {
        assert.match(node['Node Type'], /^Index (Only )?Scan$/, JSON.stringify(node))
        assert.ok(node['Index Cond'] !== undefined, JSON.stringify(node))
      }
    })
})
