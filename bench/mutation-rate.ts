/**
 * Mutations a second: `createEnvironment` as the API server runs it (key, work, answer, audit, retries, deadlines) against
 * a bare transaction that writes the very same rows by hand, in one run, in turns, with equal concurrency.
 */
import { createHash, randomUUID } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { createEnvironment } from '../apiserver/commands/create-environment.ts'
import { newId } from '../lib/model/time-ordered-id.ts'
import { type CommandWorld, commandWorld, createBody } from '../testkit/command-world.ts'
import { stopTestCluster } from '../testkit/postgres.ts'

export interface MutationRate {
  readonly commandsPerSecond: number
  readonly bareTransactionsPerSecond: number
  /** The first over the second; the median of the rounds. */
  readonly ratio: number
}

const CONCURRENCY = 16
const ROUNDS = 7
const ROUND_MS = 1500

const rateOf = async (once: () => Promise<unknown>): Promise<number> => {
  const start = performance.now()
  let done = 0
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      while (performance.now() - start < ROUND_MS) {
        await once()
        done++
      }
    }),
  )
  return (done * 1000) / (performance.now() - start)
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN

const IDEMPOTENCY = `insert into idempotency_keys (scope_hash, key_hash, fingerprint, status, body, expires_at)
  values ($1, $2, $3, 202, $4, now() + interval '1 day')`
const ENVIRONMENT = `insert into environments (organization_id, project_id, environment_id, kind, data_mode, region, postgres_major,
    deletion_policy, namespace, resource_name, seq)
  values ('acme', 'shop', $1, 'preview', 'sanitized', 'eu', 17, 'Delete', 'n', $1, 1) returning id`
const OPERATION = `insert into operations (id, kind, organization_id, project_id, environment_id, environment_row, seq, actor, request_id)
  values ($1, 'create_environment', 'acme', 'shop', $2, $3, 1, 'user:x', $4)`
const INTENT = `insert into intents (environment_row, seq, operation_id, request_id, verb, payload) values ($1, 1, $2, $3, 'create', $4)`
const AUDIT = `insert into audit_events (organization_id, actor, action, resource_kind, resource_id, metadata)
  values ('acme', 'user:x', 'create_environment', 'environment', $1, $2)`

/** What an engineer writes who needs the rows and nothing else: prepared statements, one after the other. */
const bareTransaction = async (pool: pg.Pool, serial: number): Promise<void> => {
  const client = await pool.connect()
  const run = (name: string, text: string, values: unknown[]) => client.query({ name, text, values })
  const hash = createHash('sha256').update(randomUUID()).digest()
  const operationId = newId('op')
  const payload = JSON.stringify({ kind: 'preview', resources: { cpu: '500m', memory: '256Mi' } })
  await client.query('begin')
  await run('key', IDEMPOTENCY, [hash, hash, hash, Buffer.from(JSON.stringify({ id: operationId }))])
  const { rows } = await run('environment', ENVIRONMENT, [`bare-${serial}`])
  const { id } = rows[0] as { id: string }
  await run('operation', OPERATION, [operationId, `bare-${serial}`, id, randomUUID()])
  await run('intent', INTENT, [id, operationId, randomUUID(), payload])
  await run('audit', AUDIT, [`shop/bare-${serial}`, JSON.stringify({ request_id: randomUUID() })])
  await client.query('commit')
  client.release()
}

export const measureMutationRate = async (): Promise<MutationRate> => {
  const world: CommandWorld = await commandWorld()
  const pool = new pg.Pool({ connectionString: world.plane.url('svc_api'), max: CONCURRENCY })
  pool.on('error', () => undefined) // the cluster may stop before every connection has said goodbye
  let serial = 0
  const command = (): Promise<unknown> => {
    const id = `env-${++serial}`
    return createEnvironment(world.deps, world.call(world.owner), createBody(id, { source_environment_id: null }))
  }
  const bare = (): Promise<void> => bareTransaction(pool, ++serial)
  const rounds: MutationRate[] = []
  await rateOf(command)
  await rateOf(bare)
  // Autovacuum would do this; the test cluster has none, and plans made for empty tables scan full ones.
  const admin = new pg.Client({ connectionString: world.plane.url('postgres') })
  await admin.connect()
  await admin.query('analyze')
  await admin.end()
  for (let round = 0; round < ROUNDS; round++) {
    const commandsPerSecond = await rateOf(command)
    const bareTransactionsPerSecond = await rateOf(bare)
    rounds.push({
      commandsPerSecond,
      bareTransactionsPerSecond,
      ratio: commandsPerSecond / bareTransactionsPerSecond,
    })
  }
  await pool.end()
  await world.stop()
  return {
    commandsPerSecond: median(rounds.map(round => round.commandsPerSecond)),
    bareTransactionsPerSecond: median(rounds.map(round => round.bareTransactionsPerSecond)),
    ratio: median(rounds.map(round => round.ratio)),
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { commandsPerSecond, bareTransactionsPerSecond, ratio } = await measureMutationRate()
  console.log(
    `mutations/s ${commandsPerSecond.toFixed(0)}, bare transactions/s ${bareTransactionsPerSecond.toFixed(0)}, ratio ${ratio.toFixed(2)}`,
  )
  await stopTestCluster()
}
