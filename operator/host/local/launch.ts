/** Brings an instance's files into shape and launches its server. Every step may be the last one before a crash: it is repeated. */
import { chown, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeConfigFiles } from '../../../runtime/postgres/config-files.ts'
import { createDataFolder, isInitialized } from '../../../runtime/postgres/create-data-folder.ts'
import { processesOf } from '../../../runtime/postgres/postmaster-pid.ts'
import type { RunAs } from '../../../runtime/postgres/run-as.ts'
import { launchServer, type ServerProcess } from '../../../runtime/postgres/server-process.ts'
import { COMMON_SETTINGS, type PasswordAccess, sizedSettings } from '../../../runtime/postgres/settings.ts'
import { ConditionError } from '../host.ts'
import { APP_DATABASE, APP_ROLE, OPS_ROLE } from './database-roles.ts'
import { portTaken } from './failure-reason.ts'
import type { InstanceFolders } from './folders.ts'
import type { Intent } from './intent.ts'
import { isPortFree } from './ports.ts'
import type { Surroundings } from './surroundings.ts'

/** Backends of a killed postmaster end within moments, once they notice. */
const ORPHANS_MS = 5000

/** A folder that belongs to Postgres' account alone. */
const ownFolder = async (path: string, account: RunAs | undefined): Promise<void> => {
  await mkdir(path, { recursive: true, mode: 0o700 })
  // The folder may lie below /tmp: what somebody else put there, a link too, is not ours to use.
  const found = await lstat(path)
  const owners = [process.getuid?.(), account?.uid]
  if (!found.isDirectory() || (process.getuid !== undefined && !owners.includes(found.uid)))
    throw new Error(`Cannot use ${path}: it is not a folder of ours`)
  if (account !== undefined) await chown(path, account.uid, account.gid)
}

/** Makes the data of an instance that never had any. @throws ConditionError DataMissing when it had, and it is gone */
export const ensureData = async (host: Surroundings, folders: InstanceFolders, intent: Intent): Promise<void> => {
  if (isInitialized(folders.data)) return
  if (intent.initialized)
    throw new ConditionError('StorageReady', 'DataMissing', 'The data is not where it was left; it is not made anew')
  await createDataFolder((await host.template()).folder, folders.data)
}

/**
 * Launches the server of an instance whose data is there.
 * @throws ConditionError PortTaken, StartFailed
 */
export const launchInstance = async (
  host: Surroundings,
  folders: InstanceFolders,
  intent: Intent,
): Promise<ServerProcess> => {
  const { account, binaries, reach } = host
  await mkdir(host.folders.sockets, { recursive: true, mode: 0o711 })
  for (const folder of [folders.log, folders.sockets]) await ownFolder(folder, account)
  await clearLeftovers(folders, intent.port)
  if (!(await isPortFree(reach.listen, intent.port))) {
    const { reason, message } = portTaken(intent.port)
    throw new ConditionError('DatabaseReachable', reason, message)
  }
  const configFile = await writeInstanceConfig(host, folders, intent)
  return launchServer(binaries, account, { dataFolder: folders.data, configFile, startLog: folders.startLog })
}

/** Writes the configuration files of an instance; answers postgresql.conf. */
export const writeInstanceConfig = async (
  host: Surroundings,
  folders: InstanceFolders,
  intent: Intent,
): Promise<string> => {
  const { memoryBytes, storageBytes, cpu, maxConnections } = intent.spec
  const tls = host.tls()
  return writeConfigFiles(folders.root, host.account, {
    place: {
      listen: host.reach.listen,
      port: intent.port,
      socketFolder: folders.sockets,
      logFolder: folders.log,
      name: folders.name,
      ...(tls === undefined ? {} : { tls }),
    },
    settings: [COMMON_SETTINGS, sizedSettings({ memoryBytes, storageBytes, cpus: cpus(cpu), maxConnections })],
    accesses: accesses(host.reach.listen, tls !== undefined),
  })
}

const cpus = (quantity: string): number =>
  quantity.endsWith('m') ? Math.ceil(Number.parseInt(quantity, 10) / 1000) : Number.parseInt(quantity, 10)

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

/**
 * Waits for backends of a killed postmaster to end, then removes its lock files. Postgres believes a lock file whose number
 * belongs to any living process of its account: after a machine restart that may be another environment's server. We know
 * better, because no process works in the data folder.
 */
const clearLeftovers = async (folders: InstanceFolders, port: number): Promise<void> => {
  const deadline = Date.now() + ORPHANS_MS
  while (processesOf(folders.data).length > 0) {
    if (Date.now() > deadline)
      throw new ConditionError(
        'DatabaseReachable',
        'StartFailed',
        'Processes of the server before are still there; waiting for them to end',
      )
    await sleep(20)
  }
  if (process.platform !== 'linux') return
  await rm(join(folders.data, 'postmaster.pid'), { force: true })
  for (const name of await readdir(folders.sockets))
    if (name.startsWith(`.s.PGSQL.${port}`)) await rm(join(folders.sockets, name), { force: true })
}
