/**
 * The Postgres that holds the control plane's own databases. It outlives us: a start finds it running after a crash and
 * adopts it. While we run it is watched, and started again when it dies.
 */
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { judgeLastWords, lastWords } from '../operator/host/local/failure-reason.ts'
import { syncFolder } from '../runtime/files/durable-file.ts'
import type { Log } from '../runtime/log/log.ts'
import type { PostgresBinaries } from '../runtime/postgres/binaries.ts'
import { isInitialized } from '../runtime/postgres/create-data-folder.ts'
import { findPostmaster, processesOf } from '../runtime/postgres/postmaster-pid.ts'
import type { RunAs } from '../runtime/postgres/run-as.ts'
import {
  adoptServer,
  launchServer,
  reloadServer,
  type ServerFiles,
  type ServerProcess,
  type SocketAddress,
  stopServer,
  waitUntilReady,
} from '../runtime/postgres/server-process.ts'
import {
  assertSocketFits,
  COMMON_SETTINGS,
  placedSettings,
  renderHba,
  renderIdent,
  renderSettings,
  sizedSettings,
} from '../runtime/postgres/settings.ts'
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
const KEPT_LOGS = 20
const START_ATTEMPTS = 4

const FIGURES = { memoryBytes: 512 * 2 ** 20, storageBytes: 8 * 2 ** 30, cpus: 2, maxConnections: 90 }

interface Place {
  readonly files: ServerFiles
  readonly logs: string
}

const placeOf = (folder: string): Place => ({
  files: {
    dataFolder: join(folder, 'data'),
    configFile: join(folder, 'postgresql.conf'),
    startLog: join(folder, 'start.log'),
  },
  logs: join(folder, 'log'),
})

/** Folders that Postgres' account owns; the rest of ours it can only read. */
const makeOwned = (folder: string, account: RunAs | undefined): void => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (account !== undefined) chownSync(folder, account.uid, account.gid)
}

/** The socket's folder: ours if its path is short enough for a socket, else a private one that `postmaster.pid` will name. */
const socketFolder = (folder: string, account: RunAs | undefined): string => {
  const own = join(folder, 'socket')
  let chosen = own
  try {
    assertSocketFits(own, PORT)
  } catch {
    chosen = mkdtempSync(join(tmpdir(), 'svc-'))
  }
  makeOwned(chosen, account)
  return chosen
}

const writeConfiguration = async (folder: string, sockets: string): Promise<void> => {
  const { files, logs } = placeOf(folder)
  const [hbaFile, identFile] = [join(folder, 'pg_hba.conf'), join(folder, 'pg_ident.conf')]
  const place = { listen: '', port: PORT, socketFolder: sockets, hbaFile, identFile, logFolder: logs, name: 'svc' }
  const settings = renderSettings(COMMON_SETTINGS, sizedSettings(FIGURES), placedSettings(place))
  await writeFile(files.configFile, settings, { mode: 0o644 })
  await writeFile(hbaFile, renderHba([{ type: 'local', database: 'all', role: 'all' }]), { mode: 0o644 })
  await writeFile(identFile, renderIdent(userInfo().username), { mode: 0o644 })
}

const dropOldLogs = (logs: string): void => {
  const files = readdirSync(logs).sort()
  for (const file of files.slice(0, Math.max(0, files.length - KEPT_LOGS))) rmSync(join(logs, file), { force: true })
}

/** Makes the data folder, whole or not at all: prepared beside it and renamed. */
const initialize = async (options: ControlPlanePostgresOptions, dataFolder: string): Promise<void> => {
  const work = join(options.folder, 'new')
  rmSync(work, { recursive: true, force: true })
  const made = await ensureTemplate(options.binaries, options.account, work, { name: 'control-plane', statements: [] })
  await rename(made.folder, dataFolder)
  await syncFolder(options.folder)
  rmSync(work, { recursive: true })
}

/** Adopts what runs, or starts it; `sockets` is where it was reached before. */
const bringUp = async (options: ControlPlanePostgresOptions, known?: string): Promise<Running> => {
  const { folder, account, binaries } = options
  const { files, logs } = placeOf(folder)
  const found = adoptServer(files.dataFolder)
  if (found !== undefined) {
    const sockets = findPostmaster(files.dataFolder)?.socketFolder ?? join(folder, 'socket')
    await writeConfiguration(folder, sockets)
    reloadServer(found)
    const address = { socketFolder: sockets, port: PORT }
    await waitUntilReady(found, address, START_DEADLINE_MS)
    return { server: found, address, adopted: true }
  }
  const sockets = known ?? socketFolder(folder, account)
  await writeConfiguration(folder, sockets)
  dropOldLogs(logs)
  await orphansGone(files.dataFolder)
  const launchedAt = new Date()
  try {
    const server = await launchServer(binaries, account, files)
    const address = { socketFolder: sockets, port: PORT }
    await waitUntilReady(server, address, START_DEADLINE_MS)
    return { server, address, adopted: false }
  } catch (cause) {
    const words = judgeLastWords(await lastWords(files.startLog, logs, launchedAt), PORT)
    throw new Error(words?.message ?? (cause as Error).message, { cause })
  }
}

/** Backends of a postmaster that was killed end within moments, and keep a new one from starting until they have. */
const orphansGone = async (dataFolder: string): Promise<void> => {
  for (let waits = 0; waits < 100 && processesOf(dataFolder).length > 0; waits++) await sleep(50)
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
  const { folder, account, log } = options
  const { files, logs } = placeOf(folder)
  mkdirSync(folder, { recursive: true, mode: 0o711 })
  makeOwned(logs, account)
  if (!isInitialized(files.dataFolder)) await initialize(options, files.dataFolder)
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
  const { files } = placeOf(folder)
  const server = adoptServer(files.dataFolder)
  if (server === undefined) return
  const result = await stopServer(server, STOP)
  if (result === 'still there')
    throw new BoxError(`Cannot stop the control-plane database: process ${server.pid} stays`)
}
