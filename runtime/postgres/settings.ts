/** Configuration files of a Postgres server, as text. Pure. */

/** A value of postgresql.conf: text is quoted, numbers and booleans are written as they are. */
export type SettingValue = string | number | boolean
export type Settings = Readonly<Record<string, SettingValue>>

/** The figures that shape a server. */
export interface ServerFigures {
  readonly memoryBytes: number
  readonly storageBytes: number
  readonly cpus: number
  /** What tenants may open together; ours come on top. */
  readonly maxConnections: number
}

const MIB = 1024 * 1024

/** Connections beyond the tenant's: the control plane's own and Postgres' three for superusers. */
export const CONTROL_CONNECTIONS = 8
const SUPERUSER_CONNECTIONS = 3

/** Loaded into every server from the first start on, so that no later feature needs a restart. */
const PRELOADED = 'pg_stat_statements'

const between = (low: number, value: number, high: number): number => Math.min(Math.max(Math.floor(value), low), high)
const mib = (bytes: number, low: number, high: number): string => `${between(low, bytes / MIB, high)}MB`

/**
 * What every server of ours has, whatever its size: SCRAM, archiving switched on (a later backup needs no restart) with a
 * command that does nothing, bounded logs without statements or parameters, no ALTER SYSTEM.
 */
export const COMMON_SETTINGS: Settings = {
  password_encryption: 'scram-sha-256',
  authentication_timeout: '10s',
  allow_alter_system: false,
  huge_pages: 'off',
  // Not in /dev/shm: who cleans up there (systemd does, when the last session of an account ends) would break a running server.
  dynamic_shared_memory_type: 'mmap',
  wal_level: 'replica',
  archive_mode: 'on',
  archive_command: 'true',
  max_wal_senders: 5,
  max_replication_slots: 5,
  shared_preload_libraries: PRELOADED,
  'pg_stat_statements.max': 1000,
  'pg_stat_statements.save': false,
  autovacuum: true,
  jit: false,
  timezone: 'UTC',
  log_timezone: 'UTC',
  datestyle: 'iso, mdy',
  default_text_search_config: 'pg_catalog.english',
  lc_messages: 'C',
  tcp_keepalives_idle: 60,
  log_destination: 'stderr',
  logging_collector: true,
  // One file a start and a piece; Postgres itself never removes old ones, whoever runs the server does.
  log_filename: 'postgres-%Y%m%d-%H%M%S.log',
  log_file_mode: '0640',
  log_rotation_size: '4MB',
  log_rotation_age: '1d',
  log_line_prefix: '%m [%p] %q%u@%d ',
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
  log_parameter_max_length: 0,
  log_parameter_max_length_on_error: 0,
  log_statement: 'none',
  log_min_duration_statement: -1,
  log_checkpoints: false,
  log_autovacuum_min_duration: -1,
}

/** Settings for one of many small servers on a machine: memory that is not used stays unused, WAL and temporary files are bounded. */
export const sizedSettings = (figures: ServerFigures): Settings => {
  const { memoryBytes, storageBytes, maxConnections } = figures
  const cpus = between(1, figures.cpus, 64)
  const shared = between(16 * MIB, memoryBytes / 4, 16 * 1024 * MIB)
  return {
    max_connections: maxConnections + CONTROL_CONNECTIONS,
    superuser_reserved_connections: SUPERUSER_CONNECTIONS,
    shared_buffers: mib(shared, 16, 16_384),
    effective_cache_size: mib(memoryBytes * 0.75, 32, 1_048_576),
    work_mem: mib((memoryBytes - shared) / (2 * maxConnections), 1, 64),
    maintenance_work_mem: mib(memoryBytes / 16, 16, 1024),
    min_wal_size: '32MB',
    max_wal_size: mib(storageBytes / 8, 64, 4096),
    temp_file_limit: mib(storageBytes / 4, 64, 1_048_576),
    autovacuum_max_workers: between(1, cpus, 3),
    max_worker_processes: between(4, 4 + cpus, 32),
    max_parallel_workers: cpus > 1 ? cpus : 0,
    max_parallel_workers_per_gather: cpus > 1 ? between(1, cpus / 2, 4) : 0,
    max_parallel_maintenance_workers: cpus > 1 ? between(1, cpus / 2, 4) : 0,
  }
}

/** Where a server listens and which files go with its postgresql.conf. */
export interface ServerPlace {
  /** Addresses, comma separated; empty: the unix socket only. */
  readonly listen: string
  readonly port: number
  readonly socketFolder: string
  readonly hbaFile: string
  readonly identFile: string
  readonly logFolder: string
  /** Shown in process lists. */
  readonly name: string
  readonly tls?: { readonly certificateFile: string; readonly keyFile: string }
}

/** The settings that place a server. @throws Error when its socket's path is too long for the system */
export const placedSettings = (place: ServerPlace): Settings => {
  assertSocketFits(place.socketFolder, place.port)
  return {
    listen_addresses: place.listen,
    port: place.port,
    unix_socket_directories: place.socketFolder,
    unix_socket_permissions: '0700',
    hba_file: place.hbaFile,
    ident_file: place.identFile,
    log_directory: place.logFolder,
    cluster_name: place.name.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 63),
    ...(place.tls === undefined
      ? { ssl: false }
      : {
          ssl: true,
          ssl_cert_file: place.tls.certificateFile,
          ssl_key_file: place.tls.keyFile,
          ssl_min_protocol_version: 'TLSv1.2',
        }),
  }
}

/** The longest path of a unix socket. */
const SOCKET_PATH_BYTES = 107

/** @throws Error when a server's socket in this folder would have a path longer than the system takes (107 bytes) */
export const assertSocketFits = (socketFolder: string, port: number): void => {
  const path = `${socketFolder}/.s.PGSQL.${port}`
  const bytes = Buffer.byteLength(path)
  if (bytes > SOCKET_PATH_BYTES)
    throw new Error(`Cannot listen on "${path}": ${bytes} bytes, at most ${SOCKET_PATH_BYTES}; use a shorter folder`)
}

const quote = (value: string): string => {
  if (/[\0\r\n]/.test(value))
    throw new Error(`Cannot write the setting ${JSON.stringify(value)}: it has a line break or NUL`)
  return `'${value.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
}

/** The text of a postgresql.conf; later settings win over earlier ones. */
export const renderSettings = (...parts: readonly Settings[]): string =>
  [
    '# Written by the control plane; changes made here are lost.',
    ...Object.entries(Object.assign({}, ...parts) as Settings).map(
      ([name, value]) =>
        `${name} = ${typeof value === 'string' ? quote(value) : typeof value === 'boolean' ? (value ? 'on' : 'off') : value}`,
    ),
    '',
  ].join('\n')

/** The name of the map by which the control plane's own account signs in as the superuser. */
const PEER_MAP = 'svc'

/** One line of pg_hba.conf for a role that signs in with a password. */
export interface PasswordAccess {
  /** host: any TCP connection; hostssl: only encrypted ones; local: the unix socket. */
  readonly type: 'host' | 'hostssl' | 'local'
  readonly database: string
  readonly role: string
  /** An address range, `all`, `samehost` or `samenet`; none for the unix socket. */
  readonly from?: string
}

/** pg_hba.conf: the superuser only through the private unix socket, by the account that connects; others as listed; nobody else. */
export const renderHba = (accesses: readonly PasswordAccess[]): string =>
  [
    `local all postgres peer map=${PEER_MAP}`,
    `local replication postgres peer map=${PEER_MAP}`,
    ...accesses.map(({ type, database, role, from }) =>
      [type, database, role, ...(from === undefined ? [] : [from]), 'scram-sha-256'].join(' '),
    ),
    '',
  ].join('\n')

/** pg_ident.conf: the account that may be the superuser. */
export const renderIdent = (account: string): string => `${PEER_MAP} ${identToken(account)} postgres\n`

const identToken = (name: string): string => {
  if (/["\0\r\n]/.test(name))
    throw new Error(`Cannot let ${JSON.stringify(name)} sign in: such an account name cannot be written`)
  return `"${name}"`
}
