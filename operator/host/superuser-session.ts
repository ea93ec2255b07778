import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { endSession } from '../../runtime/postgres/end-session.ts'
import type { SocketAddress } from '../../runtime/postgres/server-process.ts'
import { tlsContext } from './tls-context.ts'

/** A server reached over TLS, signed in to by a client certificate. */
export interface TlsAddress {
  readonly host: string
  readonly port: number
  readonly tls: {
    readonly ca: string
    /** The name that the server's certificate must be good for. */
    readonly servername: string
    readonly cert: string
    readonly key: string
  }
}

/** Nothing that a tenant can set reaches a session of ours. */
const PINNED = [
  'search_path=pg_catalog,pg_temp',
  'session_preload_libraries=',
  'local_preload_libraries=',
  'statement_timeout=15s',
  'lock_timeout=5s',
  'idle_in_transaction_session_timeout=30s',
  'default_transaction_read_only=off',
  'role=none',
]

const sslOf = ({ servername, ...material }: TlsAddress['tls']): ConnectionOptions => ({
  servername,
  secureContext: tlsContext(material),
  rejectUnauthorized: true,
})

/**
 * A session of the superuser, through the private socket or by certificate, in database `postgres`, where no tenant can put anything. Only for
 * roles and passwords: what belongs to a tenant is never touched by it.
 */
export const asSuperuser = async <T>(
  address: SocketAddress | TlsAddress,
  use: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = new pg.Client({
    ...('tls' in address ? { host: address.host, ssl: sslOf(address.tls) } : { host: address.socketFolder }),
    port: address.port,
    user: 'postgres',
    database: 'postgres',
    application_name: 'svc-operator',
    options: PINNED.map(setting => `-c ${setting}`).join(' '),
    connectionTimeoutMillis: 5000,
    query_timeout: 20_000,
  })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await endSession(client)
  }
}
