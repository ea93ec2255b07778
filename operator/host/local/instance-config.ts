/** What an instance's server is told: its size, its place, and who may sign in from where. */
import { wholeCores } from '../../../lib/model/quantity.ts'
import { type ServerConfig, writeConfigFiles } from '../../../runtime/postgres/config-files.ts'
import { COMMON_SETTINGS, type PasswordAccess, sizedSettings } from '../../../runtime/postgres/settings.ts'
import { APP_DATABASE, APP_ROLE, OPS_ROLE } from '../database-roles.ts'
import type { InstanceFolders } from './folders.ts'
import type { Intent } from './intent.ts'
import type { Surroundings } from './surroundings.ts'

/** What an instance's server is told. */
export const instanceConfig = (host: Surroundings, folders: InstanceFolders, intent: Intent): ServerConfig => {
  const { memoryBytes, storageBytes, cpu, maxConnections } = intent.spec
  const tls = host.tls()
  return {
    place: {
      listen: host.reach.listen,
      port: intent.port,
      socketFolder: folders.sockets,
      logFolder: folders.log,
      name: folders.name,
      ...(tls === undefined ? {} : { tls }),
    },
    settings: [COMMON_SETTINGS, sizedSettings({ memoryBytes, storageBytes, cpus: wholeCores(cpu), maxConnections })],
    accesses: accesses(host.reach.listen, tls !== undefined),
  }
}

/** Writes the configuration files of an instance anew, for a server that runs. */
export const writeInstanceConfig = (host: Surroundings, folders: InstanceFolders, intent: Intent): Promise<string> =>
  writeConfigFiles(folders.root, host.account, instanceConfig(host, folders, intent))

/** The tenant signs in over TCP, encrypted where others can listen; the control plane only from this machine. */
const accesses = (listen: string, tls: boolean): PasswordAccess[] => {
  const loopback = listen.includes(':') ? '::1/128' : '127.0.0.0/8'
  const type = tls ? 'hostssl' : 'host'
  return [
    { type, database: APP_DATABASE, role: APP_ROLE, from: tls ? 'all' : loopback },
    { type, database: APP_DATABASE, role: OPS_ROLE, from: tls ? 'samehost' : loopback },
    // For probes.
    { type: 'local', database: APP_DATABASE, role: OPS_ROLE },
  ]
}
