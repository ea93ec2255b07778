import { userInfo } from 'node:os'
import { join } from 'node:path'
import { type FileAccess, writeFileDurably } from '../files/durable-file.ts'
import type { RunAs } from './run-as.ts'
import {
  type PasswordAccess,
  placedSettings,
  renderHba,
  renderIdent,
  renderSettings,
  type ServerPlace,
  type Settings,
} from './settings.ts'

/** What a server is told: settings beyond its place, and who may sign in with a password. */
export interface ServerConfig {
  readonly place: Omit<ServerPlace, 'hbaFile' | 'identFile'>
  /** Later ones win. */
  readonly settings: readonly Settings[]
  readonly accesses: readonly PasswordAccess[]
}

/** Files that Postgres reads and does not write: ours, readable by its account's group, or by ourselves where it runs as us. */
export const readableBy = (account: RunAs | undefined): FileAccess =>
  account === undefined ? { mode: 0o600 } : { mode: 0o640, gid: account.gid }

/**
 * Writes postgresql.conf, pg_hba.conf and pg_ident.conf into a folder outside the data folder and answers the first one's path.
 * The account that runs this process may sign in as the superuser through the socket, nobody else.
 * @throws Error when the socket's path would be too long, before anything is written
 */
export const writeConfigFiles = async (
  folder: string,
  account: RunAs | undefined,
  config: ServerConfig,
): Promise<string> => {
  const hbaFile = join(folder, 'pg_hba.conf')
  const identFile = join(folder, 'pg_ident.conf')
  const configFile = join(folder, 'postgresql.conf')
  const settings = renderSettings(...config.settings, placedSettings({ ...config.place, hbaFile, identFile }))
  const access = readableBy(account)
  await writeFileDurably(hbaFile, renderHba(config.accesses), access)
  await writeFileDurably(identFile, renderIdent(userInfo().username), access)
  await writeFileDurably(configFile, settings, access)
  return configFile
}
