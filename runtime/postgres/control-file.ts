import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What pg_control says about a cluster that nobody serves. */
export type ClusterState = 'shut down' | 'not shut down' | 'unknown'

/** pg_control's layout version of Postgres 17. */
const LAYOUT = 1700
const DB_SHUTDOWNED = 1

/**
 * Whether a cluster was shut down cleanly: its shutdown checkpoint is written, the next start needs no recovery.
 * Reads pg_control (8 bytes system identifier, layout version, catalog version, state) because pg_controldata is not shipped.
 */
export const clusterState = (dataFolder: string): ClusterState => {
  let control: Buffer
  try {
    control = readFileSync(join(dataFolder, 'global', 'pg_control'))
  } catch {
    return 'unknown'
  }
  if (control.length < 20 || control.readUInt32LE(8) !== LAYOUT) return 'unknown'
  return control.readUInt32LE(16) === DB_SHUTDOWNED ? 'shut down' : 'not shut down'
}
