/**
 * The Postgres that holds the control plane's own databases. It outlives us: a start finds it running after a crash and
 * adopts it. While we run it is watched, and started again when it dies.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { syncFolder } from '../runtime/files/durable-file.ts'
import type { Log } from '../runtime/log/log.ts'
import type { PostgresBinaries } from '../runtime/postgres/binaries.ts'
import { type ServerConfig, writeConfigFiles } from '../runtime/postgres/config-files.ts'
import { isInitialized } from '../runtime/postgres/create-data-folder.ts'
import { judgeLastWords, lastWords } from '../runtime/postgres/last-words.ts'
import { dropOldLogs } from '../runtime/postgres/log-files.ts'
import { orphansGone } from '../runtime/postgres/orphans.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import type { RunAs } from '../runtime/postgres/run-as.ts'
import {
  adoptServer,
  reloadServer,
  type ServerProcess,
  type SocketAddress,
  stopServer,
  waitUntilReady,
} from '../runtime/postgres/server-process.ts'
import { COMMON_SETTINGS, sizedSettings } from '../runtime/postgres/settings.ts'
import { socketFolderOf } from '../runtime/postgres/socket-folder.ts'
import { startServer } from '../runtime/postgres/start-server.ts'
import { ensureTemplate } from '../runtime/postgres/template-folder.ts'
import { BoxError } from './box-error.ts'

/** What it needs to know. */
export interface ControlPlanePostgresOptions {
  /** The folder that is all its own. */
  readonly folder: string
  readonly account: RunAs | undefined
  readonly binaries: PostgresBinaries
  readonly log: Log
}

/** It runs, and is kept running. */
export interface ControlPlanePostgres {
  readonly address: SocketAddress
  /** Whether it ran already and was adopted. */
  readonly adopted: boolean
  /** Stops watching and leaves it running. */
  leave(): void
  /** Stops watching and stops it, cleanly if it can be. */
  stop(): Promise<void>
}

/** The port names the socket only; no TCP is listened on. */
const PORT = 5432
const START_DEADLINE_MS = 120_000
const STOP = { fastMs: 30_000, immediateMs: 10_000, killMs: 5000 } as const
const MAX_BACKOFF_MS = 15_000
const START_ATTEMPTS = 4

const FIGURES = { memoryBytes: 512 * 2 ** 20, storageBytes: 8 * 2 ** 30, cpus: 2, maxConnections: 90 }

interface Place {
  readonly dataFolder: string
  readonly startLog: string
  readonly logs: string
  readonly sockets: string
}

const placeOf = (folder: string): Place => ({
  dataFolder: join(folder, 'data'),
  startLog: join(folder, 'start.log'),
  logs: join(folder, 'log'),
  sockets: socketFolderOf(folder, join(folder, 'socket')),
})

/** Its roles sign in through the socket, by password. */
const configOf = (logFolder: string, socketFolder: string): ServerConfig => ({
  place: { listen: '', port: PORT, socketFolder, logFolder, name: 'svc' },
  settings: [COMMON_SETTINGS, sizedSettings(FIGURES)],
  accesses: [{ type: 'local', database: 'all', role: 'all' }],
})

/** Makes the data folder, whole or not at all: prepared beside it and renamed. */
const initialize = async (options: ControlPlanePostgresOptions, dataFolder: string): Promise<void> => {
  const work = join(options.folder, 'new')
  rmSync(work, { recursive: true, force: true })
  const made = await ensureTemplate(options.binaries, options.account, work, { name: 'control-plane', statements: [] })
  await rename(made.folder, dataFolder)
  await syncFolder(options.folder)
  rmSync(work, { recursive: true })
}

/** Adopts what runs, or starts it; `known` is where it was reached before, and where it is still looked for. */
const bringUp = async (options: ControlPlanePostgresOptions, known?: string): Promise<Running> => {
  const { folder, account, binaries } = options
  const { dataFolder, startLog, logs, sockets: own } = placeOf(folder)
  const sockets = known ?? own
  const found = adoptServer(dataFolder)
  if (found !== undefined) {
    // One of an earlier version may have its socket elsewhere.
    const address = { socketFolder: findPostmaster(dataFolder)?.socketFolder ?? sockets, port: PORT }
    await writeConfigFiles(folder, account, configOf(logs, address.socketFolder))
    reloadServer(found)
    await waitUntilReady(found, address, START_DEADLINE_MS)
    return { server: found, address, adopted: true }
  }
  const launchedAt = new Date()
  const address = { socketFolder: sockets, port: PORT }
  const server = await startServer({ binaries, account, folder, dataFolder, startLog, config: configOf(logs, sockets) })
  try {
    await dropOldLogs(logs)
    await waitUntilReady(server, address, START_DEADLINE_MS)
    return { server, address, adopted: false }
  } catch (cause) {
    // The log collector ends last, when all is written.
    if (!server.alive()) await orphansGone(dataFolder)
    const words = judgeLastWords(await lastWords(startLog, logs, launchedAt), PORT)
    throw new Error(words?.message ?? (cause as Error).message, { cause })
  }
}

/** The first start: what kept a killed predecessor's memory may take a moment longer to be gone. */
const bringUpPatiently = async (options: ControlPlanePostgresOptions): Promise<Running> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bringUp(options)
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error
      options.log.warn({ err: error, attempt }, 'The control-plane database did not start, trying again')
      await sleep(attempt * 250)
    }
  }
}

interface Running {
  readonly server: ServerProcess
  readonly address: SocketAddress
  readonly adopted: boolean
}

/**
 * Starts or adopts it and keeps it running until it is told otherwise.
 * @throws BoxError when it does not start
 */
export const startControlPlanePostgres = async (
  options: ControlPlanePostgresOptions,
): Promise<ControlPlanePostgres> => {
  const { folder, log } = options
  const { dataFolder, logs } = placeOf(folder)
  mkdirSync(folder, { recursive: true, mode: 0o711 })
  if (!isInitialized(dataFolder)) await initialize(options, dataFolder)
  let running: Running
  try {
    running = await bringUpPatiently(options)
  } catch (cause) {
    throw new BoxError(`Cannot start the control-plane database: ${(cause as Error).message}; its log is in ${logs}`, {
      cause,
    })
  }
  const first = running
  const ending = new AbortController()
  const isEnding = (): boolean => ending.signal.aborted
  const watch = async (): Promise<void> => {
    while (!isEnding()) {
      await Promise.race([running.server.exited, aborted(ending.signal)])
      for (let pause = 0; !isEnding(); pause = Math.min(pause * 2 + 250, MAX_BACKOFF_MS)) {
        try {
          await sleep(pause, undefined, { ref: false, signal: ending.signal })
          log.warn({ pid: running.server.pid }, 'The control-plane database is gone, starting it again')
          running = await bringUp(options, first.address.socketFolder)
          break
        } catch (error) {
          if (!isEnding()) log.error({ err: error }, 'Cannot start the control-plane database')
        }
      }
    }
  }
  const watching = watch()
  return {
    address: first.address,
    adopted: first.adopted,
    leave: () => ending.abort(),
    stop: async () => {
      ending.abort()
      await watching
      await stopControlPlanePostgres(folder)
    },
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** Stops the one that serves a folder, whoever started it; does nothing when there is none. */
export const stopControlPlanePostgres = async (folder: string): Promise<void> => {
  const { dataFolder, sockets } = placeOf(folder)
  const server = adoptServer(dataFolder)
  if (server === undefined) return
  const result = await stopServer(server, STOP)
  if (result === 'still there')
    throw new BoxError(`Cannot stop the control-plane database: process ${server.pid} stays`)
  // One below /tmp would be left behind when the home is deleted.
  rmSync(sockets, { recursive: true, force: true })
}
