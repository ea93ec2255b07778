/** Brings an instance's files into shape and launches its server. Every step may be the last one before a crash: it is repeated. */
import { mkdir } from 'node:fs/promises'
import { isInitialized } from '../../../runtime/postgres/create-data-folder.ts'
import type { ServerProcess } from '../../../runtime/postgres/server-process.ts'
import { startServer } from '../../../runtime/postgres/start-server.ts'
import { ConditionError } from '../host.ts'
import type { InstanceFolders } from './folders.ts'
import { instanceConfig } from './instance-config.ts'
import type { Intent } from './intent.ts'
import type { IntentFile } from './intent-file.ts'
import { isPortFree } from './ports.ts'
import type { Surroundings } from './surroundings.ts'

/**
 * Launches an instance's server, its data made first if it never had any.
 * @throws ConditionError DataMissing; StartError PortTaken, StartFailed; other errors for what the system refuses
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
  await mkdir(host.folders.sockets, { recursive: true, mode: 0o711 })
  return startServer({
    binaries,
    account,
    folder: folders.root,
    dataFolder: folders.data,
    startLog: folders.startLog,
    config: instanceConfig(host, folders, intent.current),
    // Not before: a server that is there after all has the figures of its own launch, which stay on record.
    launching: () => intent.change(before => ({ ...before, initialized: true, launched })),
  })
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
