import pg from 'pg'
import { opensCanary } from '../runtime/embedded/seal-canary.ts'
import { endSession } from '../runtime/postgres/end-session.ts'
import type { SocketAddress } from '../runtime/postgres/server-process.ts'
import { BoxError } from './box-error.ts'
import type { Keyring } from './master-key.ts'

const DEADLINE_MS = 10_000
/** No database or no table yet: nothing was sealed. */
const NOTHING_SEALED = new Set(['3D000', '42P01'])

const readCanary = async (address: SocketAddress): Promise<string | undefined> => {
  const client = new pg.Client({
    host: address.socketFolder,
    port: address.port,
    user: 'postgres',
    database: 'svc_resources',
    connectionTimeoutMillis: DEADLINE_MS,
    query_timeout: DEADLINE_MS,
  })
  client.on('error', () => undefined) // the query under way says it
  try {
    await client.connect()
    return (await client.query<{ sealed: string }>('select sealed from public.seal_canary')).rows[0]?.sealed
  } catch (error) {
    if (error instanceof pg.DatabaseError && NOTHING_SEALED.has(error.code ?? '')) return undefined
    throw error
  } finally {
    await endSession(client)
  }
}

/**
 * Proves, before anything is changed, that the keys open what is sealed in a control-plane database.
 * @throws BoxError naming the folder and the way out
 */
export const proveMasterKey = async (address: SocketAddress, keyring: Keyring, dataRoot: string): Promise<void> => {
  const sealed = await readCanary(address)
  if (sealed === undefined || opensCanary(keyring, sealed)) return
  const what = keyring.isNew
    ? `the master key that sealed them is not in ${keyring.source}`
    : `${keyring.source} is not the master key that sealed them`
  throw new BoxError(
    `Cannot open the secrets of the databases in ${dataRoot}: ${what}. Nothing was changed: put that key back or name it in SERVICE_KMS_PREVIOUS_MASTER_KEYS, or delete these databases with "make reset"`,
  )
}
