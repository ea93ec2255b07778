/** Brings an instance's files into shape and launches its server. Every step may be the last one before a crash: it is repeated. */
import { chown, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isInitialized } from '../../../runtime/postgres/create-data-folder.ts'
import { processesOf } from '../../../runtime/postgres/postmaster-pid.ts'
import type { RunAs } from '../../../runtime/postgres/run-as.ts'
import { adoptServer, launchServer, type ServerProcess } from '../../../runtime/postgres/server-process.ts'
import { ConditionError } from '../host.ts'
import { conditionError, portTaken } from './failure-reason.ts'
import type { InstanceFolders } from './folders.ts'
import { writeInstanceConfig } from './instance-config.ts'
import type { Intent } from './intent.ts'
import type { IntentFile } from './intent-file.ts'
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

/**
 * Launches an instance's server, its data made first if it never had any.
 * @throws ConditionError DataMissing, PortTaken, StartFailed; other errors for what the system refuses
 */
export const launchInstance = async (
  host: Surroundings,
  folders: InstanceFolders,
  intent: IntentFile,
): Promise<ServerProcess> => {
  const { account, binaries, reach, postgres } = host
  const lineage = intent.current.lineage ?? `template:${(await host.template()).key}`
  await intent.change(before => ({ ...before, lineage }))
  await ensureData(host, folders, intent.current)
  await keepPortFree(host, intent)
  const launched = { spec: intent.current.spec, listen: reach.listen, tls: host.tls() !== undefined, postgres }
  await intent.change(before => ({ ...before, initialized: true, launched }))
  const { port } = intent.current
  await mkdir(host.folders.sockets, { recursive: true, mode: 0o711 })
  for (const folder of [folders.log, folders.sockets]) await ownFolder(folder, account)
  const found = await clearLeftovers(folders, port)
  if (found !== undefined) return found
  if (!(await isPortFree(reach.listen, port))) throw conditionError(portTaken(port))
  const configFile = await writeInstanceConfig(host, folders, intent.current)
  return launchServer(binaries, account, { dataFolder: folders.data, configFile, startLog: folders.startLog })
}

/** Data that was there and is gone is never made anew. */
const ensureData = async (host: Surroundings, folders: InstanceFolders, intent: Intent): Promise<void> => {
  if (isInitialized(folders.data)) return
  if (intent.initialized)
    throw new ConditionError('StorageReady', 'DataMissing', 'The data is not where it was left; it is not made anew')
  await host.newData.make(folders.data)
}

/** An instance that never ran was told to nobody: while its data was made, somebody else may have taken its port. */
const keepPortFree = async ({ ports, reach }: Surroundings, intent: IntentFile): Promise<void> => {
  const { connectionLimit, port, uid } = intent.current
  if (connectionLimit !== undefined || (await isPortFree(reach.listen, port))) return
  const another = await ports.give(uid)
  await intent.change(before => ({ ...before, port: another }))
  ports.giveBack(port, uid)
}

/**
 * Waits for backends of a killed postmaster to end, then removes its lock files; answers the server if one is there after all,
 * launched by a control plane that died before it had written its own lock file. Postgres believes a lock file whose number
 * belongs to any living process of its account: after a machine restart that may be another environment's server. We know
 * better, because no process works in the data folder.
 */
const clearLeftovers = async (folders: InstanceFolders, port: number): Promise<ServerProcess | undefined> => {
  const deadline = Date.now() + ORPHANS_MS
  while (processesOf(folders.data).length > 0) {
    const found = adoptServer(folders.data)
    if (found !== undefined) return found
    if (Date.now() > deadline)
      throw new ConditionError(
        'DatabaseReachable',
        'StartFailed',
        'Processes of the server before are still there; waiting for them to end',
      )
    await sleep(20)
  }
  if (process.platform !== 'linux') return undefined
  await rm(join(folders.data, 'postmaster.pid'), { force: true })
  for (const name of await readdir(folders.sockets))
    if (name.startsWith(`.s.PGSQL.${port}`)) await rm(join(folders.sockets, name), { force: true })
  return undefined
}
