/** What a server in a pod is told: some of it at its start, the rest in a file that a reload reads again. */

import { createHash } from 'node:crypto'
import { POSTGRES_PORT } from '../../../lib/model/environment.ts'
import { wholeCores } from '../../../lib/model/quantity.ts'
import {
  COMMON_SETTINGS,
  renderSettings,
  type Settings,
  type SettingValue,
  sizedSettings,
} from '../../../runtime/postgres/settings.ts'
import { FILE_NAMES } from './build-files-secret.ts'
import { FILES_PATH } from './build-stateful-set.ts'
import type { PlacedSpec } from './wanted.ts'

/** What Postgres reads at its start only. A test asks a real server for the list. */
const READ_AT_START: ReadonlySet<string> = new Set([
  'archive_mode',
  'autovacuum_max_workers',
  'cluster_name',
  'dynamic_shared_memory_type',
  'huge_pages',
  'listen_addresses',
  'logging_collector',
  'max_connections',
  'max_replication_slots',
  'max_wal_senders',
  'max_worker_processes',
  'pg_stat_statements.max',
  'port',
  'shared_buffers',
  'shared_preload_libraries',
  'superuser_reserved_connections',
  'unix_socket_directories',
  'unix_socket_permissions',
  'wal_level',
])

/** Logs go to the container's standard error, where the cluster collects them. */
const LOG_FILES = /^log_(filename|file_mode|rotation_size|rotation_age)$/

const file = (name: string): string => `${FILES_PATH}/${name}`

const allSettings = (spec: PlacedSpec, name: string): Settings => ({
  ...COMMON_SETTINGS,
  ...sizedSettings({ ...spec, cpus: wholeCores(spec.cpu) }),
  listen_addresses: '*',
  port: POSTGRES_PORT,
  unix_socket_directories: '/run/postgresql',
  unix_socket_permissions: '0700',
  cluster_name: name,
  logging_collector: false,
  ssl: true,
  ssl_cert_file: file(FILE_NAMES.certificate),
  ssl_key_file: file(FILE_NAMES.key),
  ssl_ca_file: file(FILE_NAMES.authorities),
  ssl_min_protocol_version: 'TLSv1.2',
})

const text = (value: SettingValue): string => (typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value))

/** Settings for the command line: with others the server has to be restarted. */
export const startSettings = (spec: PlacedSpec, name: string): Readonly<Record<string, string>> => ({
  config_file: file(FILE_NAMES.settings),
  ...Object.fromEntries(
    Object.entries(allSettings(spec, name))
      .filter(([setting]) => READ_AT_START.has(setting))
      .map(([setting, value]): [string, string] => [setting, text(value)]),
  ),
})

/** The setting by which a server tells which files it has read. */
export const FILES_SETTING = 'svc.files'

/**
 * The text of postgresql.conf. Its last line is a digest of all the server's files, this text included: a server that shows
 * it has read them all.
 */
export const reloadableSettings = (
  spec: PlacedSpec,
  name: string,
  otherFiles: readonly string[],
): { readonly settings: string; readonly digest: string } => {
  const settings = renderSettings(
    Object.fromEntries(
      Object.entries(allSettings(spec, name)).filter(
        ([setting]) => !READ_AT_START.has(setting) && !LOG_FILES.test(setting),
      ),
    ),
  )
  const digest = createHash('sha256')
    .update(JSON.stringify([settings, ...otherFiles]))
    .digest('hex')
    .slice(0, 16)
  return { settings: `${settings}${FILES_SETTING} = '${digest}'\n`, digest }
}
