/**
 * Opens an environment's own database as the control plane's role there. The database belongs to somebody else, so every
 * session pins its search_path, waits for nothing long, and reads catalogs only. One connection a visit, never kept.
 */
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import pg from 'pg'
import type { Endpoint } from '../../crds/environment.ts'
import type { DatabaseCredential } from '../../runtime/credentials/credentials.ts'
import { endSession } from '../../runtime/postgres/end-session.ts'
import { TENANT_DATABASE } from './connection-uri.ts'

const CONNECT_TIMEOUT_MS = 3000
const STATEMENT_TIMEOUT_MS = 5000
const LOCK_TIMEOUT_MS = 1000
/** session_preload_libraries needs no pin: only a superuser can set it for another role's sessions. */
const SESSION = ['search_path=pg_catalog', `lock_timeout=${LOCK_TIMEOUT_MS}`]

/** Where and as whom. */
export interface TenantTarget {
  readonly endpoint: Endpoint
  readonly credential: DatabaseCredential
  /** PEM of the authority that proves the server where it speaks TLS, for the name in `endpoint`. */
  readonly caCertificate: string | undefined
  /** Where to connect instead of the name that clients are told, to which no way may lead from here. */
  readonly address?: string | undefined
}

/** Reads rows of one statement. */
export type TenantQuery = <Row extends pg.QueryResultRow>(text: string) => Promise<readonly Row[]>

const tlsOf = ({ endpoint, caCertificate }: TenantTarget): pg.ClientConfig['ssl'] => {
  if (endpoint.sslmode === 'disable') return false
  if (caCertificate === undefined) return { rejectUnauthorized: false }
  const { host } = endpoint
  return {
    ca: caCertificate,
    checkServerIdentity: (_connectedTo, certificate) => checkServerIdentity(host, certificate),
    ...(isIP(host) === 0 && { servername: host }),
  }
}

/** Runs `use` in one session. @throws whatever the driver or `use` throws; at the deadlines too */
export const inTenantDatabase = async <T>(
  target: TenantTarget,
  use: (query: TenantQuery) => Promise<T>,
): Promise<T> => {
  const { endpoint, credential, address } = target
  const client = new pg.Client({
    host: address ?? endpoint.host,
    port: endpoint.port,
    database: TENANT_DATABASE,
    user: credential.username,
    password: credential.password,
    ssl: tlsOf(target),
    application_name: 'svc-apiserver',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS + 1000,
    options: SESSION.map(setting => `-c ${setting}`).join(' '),
  })
  client.on('error', () => undefined) // a lost connection fails the query under way, which tells
  try {
    await client.connect()
    return await use(async text => (await client.query(text)).rows as never)
  } finally {
    void endSession(client)
  }
}
