/** Figures of an intent that a running server takes over. */
import { reloadServer, type ServerProcess, type SocketAddress } from '../../../runtime/postgres/server-process.ts'
import { applyConnectionLimit } from '../apply-roles.ts'
import type { InstanceFolders } from './folders.ts'
import { writeInstanceConfig } from './instance-config.ts'
import type { IntentFile } from './intent-file.ts'
import type { Surroundings } from './surroundings.ts'

/** A bigger disk changes limits that need no restart. */
export const takeOverStorage = async (
  host: Surroundings,
  folders: InstanceFolders,
  intent: IntentFile,
  server: ServerProcess,
): Promise<void> => {
  const { launched, spec } = intent.current
  if (launched === undefined || launched.spec.storageBytes === spec.storageBytes) return
  await writeInstanceConfig(host, folders, intent.current)
  reloadServer(server)
  await intent.change(before => ({ ...before, launched: { ...launched, spec } }))
}

/** The tenant's connection limit needs a session: only when it changed. */
export const takeOverConnectionLimit = async (address: SocketAddress, intent: IntentFile): Promise<void> => {
  const { maxConnections } = intent.current.spec
  if (intent.current.connectionLimit === maxConnections) return
  await applyConnectionLimit(address, maxConnections)
  await intent.change(before => ({ ...before, connectionLimit: maxConnections }))
}
