/**
 * The two databases of the control plane and who may do what: `svc` belongs to svc_owner, which migrates, and is served by
 * svc_api; `svc_resources` belongs to svc_store. Nobody may connect anywhere else, so the operator's login opens no
 * control-plane table.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { scramVerifier } from '../lib/credentials/scram-verifier.ts'
import { endSession } from '../runtime/postgres/end-session.ts'
import type { SocketAddress } from '../runtime/postgres/server-process.ts'
import { readSecret, writeSecret } from './write-secret.ts'

const ROLES = ['svc_owner', 'svc_api', 'svc_store'] as const
type ControlPlaneRole = (typeof ROLES)[number]

/** How to reach the databases, passwords included. */
export interface ControlPlaneUrls {
  /** Migrations only. */
  readonly owner: string
  readonly serving: string
  readonly store: string
}

const CONNECT_TIMEOUT_MS = 10_000
const STATEMENT_TIMEOUT_MS = 60_000

const passwordsPath = (secretsFolder: string): string => join(secretsFolder, 'control-plane.json')

/** The roles' passwords, made at the first start and kept. */
const passwords = (secretsFolder: string): Readonly<Record<ControlPlaneRole, string>> => {
  const kept = readSecret(passwordsPath(secretsFolder))
  if (kept !== undefined) return JSON.parse(kept) as Record<ControlPlaneRole, string>
  const made = Object.fromEntries(ROLES.map(role => [role, randomBytes(32).toString('base64url')]))
  writeSecret(passwordsPath(secretsFolder), `${JSON.stringify(made)}\n`)
  return made as Record<ControlPlaneRole, string>
}

/** The URLs of the databases of a server that is reached through its unix socket. */
export const controlPlaneUrls = (secretsFolder: string, address: SocketAddress): ControlPlaneUrls => {
  const kept = passwords(secretsFolder)
  const url = (role: ControlPlaneRole, database: string): string =>
    `postgres://${role}:${kept[role]}@/${database}?host=${encodeURIComponent(address.socketFolder)}&port=${address.port}`
  return {
    owner: url('svc_owner', 'svc'),
    serving: url('svc_api', 'svc'),
    store: url('svc_store', 'svc_resources'),
  }
}

/** Makes roles and databases that are missing, and sets passwords and grants again. Changes nothing else. */
export const ensureControlPlaneDatabases = async (secretsFolder: string, address: SocketAddress): Promise<void> => {
  const kept = passwords(secretsFolder)
  const client = new pg.Client({
    host: address.socketFolder,
    port: address.port,
    user: 'postgres',
    database: 'postgres',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS,
  })
  client.on('error', () => undefined) // the query under way says it
  await client.connect()
  try {
    const { rows: roles } = await client.query<{ name: string }>('select rolname as name from pg_roles')
    for (const role of ROLES) {
      const verb = roles.some(({ name }) => name === role) ? 'alter' : 'create'
      // Names and verifiers are ours and hold no quote; DDL takes no parameters.
      await client.query(`${verb} role ${role} login password '${await scramVerifier(kept[role])}'`)
    }
    const { rows: databases } = await client.query<{ name: string }>('select datname as name from pg_database')
    const missing = (database: string): boolean => !databases.some(({ name }) => name === database)
    if (missing('svc')) await client.query('create database svc owner svc_owner')
    if (missing('svc_resources')) await client.query('create database svc_resources owner svc_store')
    for (const database of ['postgres', 'template1', 'svc', 'svc_resources'])
      await client.query(`revoke all on database ${database} from public`)
    await client.query('grant connect on database svc to svc_api')
  } finally {
    await endSession(client)
  }
}
