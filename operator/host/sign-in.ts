import pg from 'pg'
import type { DatabaseCredential } from '../../runtime/credentials/credentials.ts'
import { endSession } from '../../runtime/postgres/end-session.ts'
import { APP_DATABASE } from './database-roles.ts'
import type { SignIn } from './host.ts'
import { tlsContext } from './tls-context.ts'

const DEADLINE_MS = 5000
/** SQLSTATEs by which Postgres refuses a credential. */
const REFUSED = new Set(['28P01', '28000', '3D000', '42501'])

/** Where a server is reached. */
export interface Door {
  readonly host: string
  readonly port: number
  /** Left out where clients use none. */
  readonly tls?: {
    readonly ca: string
    /** The name that clients are told. */
    readonly servername: string
  }
}

const sslOf = ({ tls }: Door): pg.ClientConfig['ssl'] =>
  tls === undefined
    ? false
    : { servername: tls.servername, secureContext: tlsContext({ ca: tls.ca }), rejectUnauthorized: true }

/**
 * Signs in the way a client would: over TCP, by password, and with TLS where clients use it, judging the certificate for the
 * name that they are told. The way there may be a shorter one than theirs.
 */
export const signInOverTcp = async (
  door: Door,
  credential: DatabaseCredential,
  database = APP_DATABASE,
): Promise<SignIn> => {
  const client = new pg.Client({
    host: door.host,
    port: door.port,
    user: credential.username,
    password: credential.password,
    database,
    application_name: 'svc-operator',
    // A tenant may set for its role what fails every sign-in that does not say otherwise: no fault of the environment's.
    options: '-c local_preload_libraries= -c role=none',
    connectionTimeoutMillis: DEADLINE_MS,
    ssl: sslOf(door),
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return { result: 'ok' }
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    // The tenant has opened all that it may: the password was good, or it would not have been counted.
    if (code === '53300' && message.includes('for role')) return { result: 'ok' }
    return { result: REFUSED.has(code ?? '') ? 'refused' : 'unreachable', message: `${code ?? 'Error'}: ${message}` }
  } finally {
    await endSession(client)
  }
}
