/** What all instances of one local host share. */
import type { Log } from '../../../runtime/log/log.ts'
import type { PostgresBinaries } from '../../../runtime/postgres/binaries.ts'
import type { RunAs } from '../../../runtime/postgres/run-as.ts'
import type { Template } from '../../../runtime/postgres/template-folder.ts'
import type { HostFolders } from './folders.ts'
import type { LocalMetrics } from './local-metrics.ts'
import type { NewData } from './new-data.ts'
import type { Ports } from './ports.ts'
import type { ServerTls } from './server-tls.ts'
import type { StartSlots } from './start-slots.ts'

/** How often things are looked at, and how long they may take, in milliseconds. */
export interface Times {
  /** Between looks at adopted processes, which tell nobody when they die. */
  readonly tick: number
  readonly probeEvery: number
  readonly probeDeadline: number
  /** The wait before the first restart; it doubles up to the longest. */
  readonly firstRetry: number
  readonly longestRetry: number
  /** A server that ran this long counts as well again. */
  readonly stable: number
  /** For a clean stop; after it come SIGQUIT and SIGKILL, which lose nothing that was committed. */
  readonly cleanStop: number
  /** How long a destroy waits for the process before it answers that it is not done. */
  readonly destroyWait: number
  /** Between sweeps of the trash and looks at the certificate. */
  readonly sweepEvery: number
  /** How long nothing has to start before a data folder is made ahead; Infinity: never. */
  readonly aheadAfter: number
}

export const DEFAULT_TIMES: Times = {
  tick: 1000,
  probeEvery: 10_000,
  probeDeadline: 5000,
  firstRetry: 100,
  longestRetry: 60_000,
  stable: 60_000,
  cleanStop: 120_000,
  destroyWait: 5000,
  sweepEvery: 3_600_000,
  aheadAfter: 1000,
}

/** Where environments listen, and what clients are told. */
export interface Reach {
  /** One address. */
  readonly listen: string
  /** The name or address in endpoints. */
  readonly host: string
}

export interface Surroundings {
  readonly folders: HostFolders
  readonly binaries: PostgresBinaries
  /** The version of `binaries`. */
  readonly postgres: string
  readonly account: RunAs | undefined
  readonly reach: Reach
  readonly ports: Ports
  readonly slots: StartSlots
  readonly times: Times
  readonly metrics: LocalMetrics
  readonly log: Log
  /** The template of new environments, made at the first use. */
  template(): Promise<Template>
  readonly newData: NewData
  /** The server's certificate; undefined where environments are reached through loopback only. */
  tls(): ServerTls | undefined
  /** Tells listeners that an instance changed by itself. */
  changed(instance: { readonly key: { readonly namespace: string; readonly name: string } }): void
}
