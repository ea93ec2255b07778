/** What the operator does inside a server: signs in through the Service as clients do, by its own certificate. */
import type pg from 'pg'
import { POSTGRES_PORT } from '../../../lib/model/environment.ts'
import { limitConnections } from '../apply-roles.ts'
import { APP_ROLE } from '../database-roles.ts'
import { type Disk, judgeDisk } from '../disk.ts'
import type { Door } from '../sign-in.ts'
import { asSuperuser, type TlsAddress } from '../superuser-session.ts'
import type { Signing } from './authority-secret.ts'
import type { InstanceNames } from './instance-names.ts'
import type { Service } from './object-types.ts'
import { FILES_SETTING } from './server-settings.ts'

/** Where clients connect; the certificate is judged for the name that they are told. undefined: there is no address yet. */
export const doorOf = (names: InstanceNames, service: Service | undefined, authorities: string): Door | undefined => {
  const host = service?.spec?.clusterIP
  return host === undefined || host === '' || host === 'None'
    ? undefined
    : { host, port: POSTGRES_PORT, tls: { ca: authorities, servername: names.host } }
}

/** The same door, for the superuser. */
export const superuserAddress = (door: Door, { client }: Signing): TlsAddress => ({
  host: door.host,
  port: door.port,
  tls: {
    ca: door.tls?.ca ?? '',
    servername: door.tls?.servername ?? door.host,
    cert: client.certificate,
    key: client.key,
  },
})

/** What a server that answers says of itself. */
export interface ServerNews {
  /** The digest of the files that it has read. */
  readonly files: string
  readonly disk: Disk | undefined
}

/**
 * Makes a server what it should be where no file says it, and has it read its files again where they changed.
 * @throws whatever the driver throws: it does not answer yet
 */
export const settleServer = (
  address: TlsAddress,
  wanted: { readonly connectionLimit: number; readonly files: string | undefined },
  wasLow: boolean,
  mustLead: () => void = () => undefined,
): Promise<ServerNews> =>
  asSuperuser(address, async client => {
    const { rows } = await client.query<{ files: string | null; limit: number }>(
      `select current_setting('${FILES_SETTING}', true) as files, rolconnlimit as "limit" from pg_roles where rolname = $1`,
      [APP_ROLE],
    )
    const found = rows[0]
    if (found?.limit !== wanted.connectionLimit) {
      mustLead()
      await limitConnections(client, wanted.connectionLimit)
    }
    const files = found?.files ?? ''
    // Kubelet brings new files within a minute or so: asked for again until the server has read them.
    if (wanted.files !== undefined && files !== wanted.files) await client.query('select pg_reload_conf()')
    return { files, disk: await readDisk(client, wasLow) }
  })

/** Where df leaves its answer: not on the volume, which may be full. */
const ANSWER = '/tmp/svc-df'

/** Only the server's own side sees the volume. Nothing of a tenant's is in the command. undefined: it cannot be asked. */
const readDisk = async (client: pg.Client, wasLow: boolean): Promise<Disk | undefined> => {
  try {
    await client.query(`copy (select) to program 'df --block-size=1 --output=avail,size . > ${ANSWER}'`)
    const { rows } = await client.query<{ answer: string }>(`select pg_read_file('${ANSWER}') as answer`)
    const [free = Number.NaN, total = Number.NaN] = (rows[0]?.answer.trim().split('\n').at(-1) ?? '')
      .trim()
      .split(/\s+/)
      .map(Number)
    return total > 0 && free >= 0 ? judgeDisk(free, total, wasLow) : undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && typeof error.code === 'string') return undefined
    throw error
  }
}
