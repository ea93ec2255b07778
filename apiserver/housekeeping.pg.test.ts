import assert from 'node:assert/strict'
import { newAgentToken, newPersonalToken } from '../lib/credentials/token.ts'
import { newId } from '../lib/model/time-ordered-id.ts'
import { silentLog } from '../runtime/log/log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../testkit/control-plane-database.ts'
import { type Housekeeping, startHousekeeping } from './housekeeping.ts'
import { insertApiKey, revokeApiKey } from './store/api-keys.ts'
import { insertTokenEvents, listTokenEvents } from './store/token-events.ts'
import { insertToken, listTokens, revokeToken } from './store/tokens.ts'
import { insertUser } from './store/users.ts'

const DAY_MS = 86_400_000
const USER = newId('usr')
const SESSIONS = { idle: 7200, absolute: 43_200, rotate: 900 }
const PAGE = { limit: 100 }

/** Where something lies that opens, or is compared with what opens, and how its rows end. */
const CREDENTIALS: Readonly<Record<string, string>> = {
  api_keys: 'swept 30 days after the revocation',
  configured_administrator: 'one row: a digest of the configuration',
  derivation_root: 'one row, sealed by the master key',
  device_requests: 'swept an hour after they ran out',
  idempotency_keys: 'swept after a day, their secrets after ten minutes',
  invitations: 'swept when they ran out, removed when accepted, replaced or revoked',
  magic_links: 'swept when they ran out, removed when used',
  mail_outbox: 'the secret goes with the letter, the row 30 days later',
  mfa_tokens: 'swept when they ran out, removed when used',
  organization_sso: 'removed with the provider',
  password_resets: 'swept when they ran out, removed when used or replaced',
  passwords: 'one for an account, replaced or removed',
  recovery_codes: 'removed when used, and with the second factor',
  seal_canary: 'one row that opens nothing',
  second_factors: 'one for an account; swept when the first code never came',
  session_tokens: 'go with their session',
  setup_tokens: 'one row, replaced at each start and removed by the setup',
  sso_flows: 'swept when they ran out, removed when used',
  tokens: 'swept 30 days after they were revoked or expired',
}
/** They hold digests of what opens nothing. */
const NO_CREDENTIALS = ['account_events', 'audit_events', 'audit_heads', 'intents']

describe('housekeeping', () => {
  let plane: ControlPlaneDatabase
  let housekeeping: Housekeeping
  before(async () => {
    plane = await controlPlaneDatabase()
    housekeeping = startHousekeeping(plane.database, { sessions: SESSIONS }, silentLog)
    await insertUser(plane.database, { userId: USER, email: 'ada@example.com', name: 'Ada', isOperator: false })
    await plane.database.rows(`insert into organizations (organization_id, name) values ('acme', 'Acme')`)
  })
  after(async () => {
    await housekeeping.stop()
    await plane.database.stop()
  })

  const daysAgo = (days: number): Date => new Date(Date.now() - days * DAY_MS)
  const token = async (name: string, ended: { expired?: number; revoked?: number } = {}, isAgent = false) => {
    const expiresAt = ended.expired === undefined ? undefined : daysAgo(ended.expired)
    const { digest, prefix } = isAgent ? newAgentToken(['read'], expiresAt) : newPersonalToken()
    const id = newId('tok')
    const scopes = isAgent ? ['read'] : undefined
    await insertToken(plane.database, { id, userId: USER, name, digest, tokenPrefix: prefix, expiresAt, scopes })
    if (ended.revoked !== undefined) {
      await revokeToken(plane.database, id)
      await plane.database.rows('update tokens set revoked_at = $2 where id = $1', [id, daysAgo(ended.revoked)])
    }
    return id
  }
  const used = (tokenId: string) => ({
    tokenId,
    at: new Date(),
    method: 'GET',
    path: '/v1/organizations',
    status: 200,
    clientIp: '::1',
  })
  const names = async (table: string): Promise<readonly string[]> =>
    (await plane.database.rows<{ name: string }>(`select name from ${table} order by name`)).map(({ name }) => name)

  it('forgets tokens 30 days after they were revoked or expired, with what they were used for, and no others', async () => {
    const old = [
      await token('revoked long ago', { revoked: 31 }),
      await token('expired long ago', { expired: 31 }),
      await token('an agent’s that expired long ago', { expired: 31 }, true),
      await token('revoked long ago, and would go on', { revoked: 31, expired: -1 }),
      await token('expired long ago, revoked since', { revoked: 1, expired: 31 }),
    ]
    const kept = [
      await token('for ever'),
      await token('until tomorrow', { expired: -1 }),
      await token('an agent’s until tomorrow', { expired: -1 }, true),
      await token('revoked lately', { revoked: 29 }),
      await token('expired lately', { expired: 29 }),
    ]
    await insertTokenEvents(
      plane.database,
      [...old, ...kept].flatMap(id => [used(id), used(id)]),
    )
    const shown = (await listTokens(plane.database, USER, PAGE)).items.map(({ name }) => name).toSorted()
    await housekeeping.round()
    const left = await names('tokens')
    assert.deepEqual(left, [
      'an agent’s until tomorrow',
      'expired lately',
      'for ever',
      'revoked lately',
      'until tomorrow',
    ])
    // What is forgotten was not shown before either.
    assert.deepEqual(shown, left)
    for (const id of kept) assert.equal((await listTokenEvents(plane.database, id, PAGE)).items.length, 2)
    const events = await plane.database.row<{ n: number }>('select count(*)::int as n from token_events')
    assert.equal(events?.n, 2 * kept.length)
  })

  it('keeps requests of tokens that are there, whatever comes with them of one that is forgotten', async () => {
    const id = await token('busy', {}, true)
    await insertTokenEvents(plane.database, [used(newId('tok')), used(id)])
    assert.equal((await listTokenEvents(plane.database, id, PAGE)).items.length, 1)
  })

  it('forgets API keys 30 days after they were revoked, and no others', async () => {
    for (const [name, revoked] of [
      ['revoked long ago', 31],
      ['revoked lately', 29],
      ['in use', undefined],
    ] as const) {
      const { digest, prefix: keyPrefix } = newPersonalToken()
      const id = newId('key')
      await insertApiKey(plane.database, {
        id,
        organizationId: 'acme',
        name,
        scopes: ['read'],
        digest,
        keyPrefix,
        createdBy: USER,
      })
      if (revoked === undefined) continue
      await revokeApiKey(plane.database, id)
      await plane.database.rows('update api_keys set revoked_at = $2 where id = $1', [id, daysAgo(revoked)])
    }
    await housekeeping.round()
    assert.deepEqual(await names('api_keys'), ['in use', 'revoked lately'])
  })

  it('leaves no table of credentials without an end: a new one needs a line here', async () => {
    const tables = await plane.database.rows<{ name: string }>(
      `select distinct c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
       where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
         and (a.attname ~ 'hash|digest|sealed' or a.atttypid = 'bytea'::regtype) order by name`,
    )
    const known = [...Object.keys(CREDENTIALS), ...NO_CREDENTIALS, 'attempts', 'sign_in_failures'].toSorted()
    assert.deepEqual(
      tables.map(({ name }) => name),
      known,
    )
  })
})
