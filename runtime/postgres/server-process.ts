/**
 * One Postgres server as a process: launched so that it outlives us, adopted when it did, stopped so that it is proven gone.
 * Never restarts anything by itself and never signals a process that was not proven to be the data folder's postmaster.
 */
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { PostgresBinaries } from './binaries.ts'
import { clusterState } from './control-file.ts'
import { endSession } from './end-session.ts'
import { findPostmaster, processBirth, processesOf, readPostmasterFile } from './postmaster-pid.ts'
import type { RunAs } from './run-as.ts'

/** A server's files, all readable by the account it runs as. */
export interface ServerFiles {
  readonly dataFolder: string
  /** postgresql.conf; it names the others (hba_file, ident_file) and lives outside the data folder. */
  readonly configFile: string
  /** Gets what Postgres says before its own log collector runs, since the last launch. */
  readonly startLog: string
}

/** A postmaster that was launched or adopted. */
export interface ServerProcess {
  readonly pid: number
  readonly dataFolder: string
  /** Launched by this process: it is told when the server exits. False: adopted, somebody has to look. */
  readonly launched: boolean
  /** Whether this very process still lives. Two cheap system calls. */
  alive(): boolean
  /** Settles when it is gone, with what is known of how. */
  readonly exited: Promise<ServerExit>
}

/** How a postmaster ended; both undefined when it was not our child. */
export interface ServerExit {
  readonly code: number | undefined
  readonly signal: string | undefined
}

/** How a stop ended. `clean`: the shutdown checkpoint is written. `still there`: it did not go, and was left alone. */
export type StopResult = 'clean' | 'unclean' | 'still there'

/** The environment of a server: English messages, nothing of ours. */
const SERVER_ENV = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', TZ: 'UTC' }

/** Options for a child that runs a program of Postgres: who it is, and nothing of our environment. */
export const childIdentity = (
  account: RunAs | undefined,
): { cwd: string; env: Record<string, string>; uid?: number; gid?: number } => ({
  cwd: '/',
  env: SERVER_ENV,
  ...(account === undefined ? {} : { uid: account.uid, gid: account.gid }),
})

/**
 * Launches a server and returns at once. It is in a session of its own: Ctrl-C on our terminal does not reach it.
 * @throws Error when the program cannot be run at all
 */
export const launchServer = async (
  binaries: PostgresBinaries,
  account: RunAs | undefined,
  files: ServerFiles,
): Promise<ServerProcess> => {
  const output = openSync(files.startLog, 'w', 0o600)
  try {
    const child = spawn(binaries.postgres, ['-D', files.dataFolder, '-c', `config_file=${files.configFile}`], {
      ...childIdentity(account),
      detached: true,
      stdio: ['ignore', output, output],
    })
    const exited = new Promise<ServerExit>(resolve =>
      child.once('exit', (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined })),
    )
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    const { pid } = child
    if (pid === undefined) throw new Error(`Cannot run ${binaries.postgres}: it got no process id`)
    const birth = processBirth(pid)
    return {
      pid,
      dataFolder: files.dataFolder,
      launched: true,
      exited,
      // Asked of the system too: the news of its end may still be on its way to us.
      alive: () => child.exitCode === null && child.signalCode === null && processBirth(pid) === birth,
    }
  } finally {
    closeSync(output)
  }
}

/** The server that serves a data folder already, launched by an earlier process of ours; undefined when there is none. */
export const adoptServer = (dataFolder: string): ServerProcess | undefined => {
  const postmaster = findPostmaster(dataFolder)
  if (postmaster === undefined) return undefined
  const { pid } = postmaster
  const birth = processBirth(pid)
  if (birth === undefined) return undefined
  const alive = (): boolean => processBirth(pid) === birth
  let exited: Promise<ServerExit> | undefined
  return {
    pid,
    dataFolder,
    launched: false,
    alive,
    // A getter: polling begins only for who asks.
    get exited() {
      return (exited ??= untilGone(alive))
    },
  }
}

const untilGone = async (alive: () => boolean): Promise<ServerExit> => {
  while (alive()) await sleep(100, undefined, { ref: false })
  return { code: undefined, signal: undefined }
}

/** How to reach a server through its unix socket. */
export interface SocketAddress {
  readonly socketFolder: string
  readonly port: number
}

/**
 * Waits until a server accepts connections, proven by one of the superuser through the private socket.
 * @throws Error when it exits first or the deadline passes; the process is left as it is
 */
export const waitUntilReady = async (
  server: ServerProcess,
  address: SocketAddress,
  deadlineMs: number,
): Promise<void> => {
  const deadline = Date.now() + deadlineMs
  let last: unknown
  while (Date.now() < deadline) {
    if (!server.alive()) throw new Error(`Postgres exited while starting (process ${server.pid})`)
    const file = readPostmasterFile(server.dataFolder)
    if (file?.pid === server.pid && file.status === 'ready') {
      try {
        await signInOnce(address)
        return
      } catch (error) {
        last = error
      }
    }
    await sleep(10)
  }
  throw new Error(`Postgres does not answer after ${Math.round(deadlineMs / 1000)} s (process ${server.pid})`, {
    cause: last,
  })
}

const signInOnce = async (address: SocketAddress): Promise<void> => {
  const client = new pg.Client({
    host: address.socketFolder,
    port: address.port,
    user: 'postgres',
    database: 'postgres',
    connectionTimeoutMillis: 5000,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
  } finally {
    await endSession(client)
  }
}

/** How long each kind of stop may take; 0 or absent: that kind is not tried. */
export interface StopDeadlines {
  /** SIGINT: sessions end, a checkpoint is written. */
  readonly fastMs: number
  /** Then SIGQUIT: no checkpoint, the next start recovers. Nothing committed is lost. */
  readonly immediateMs?: number
  /** Then SIGKILL, for a postmaster that is frozen. Nothing committed is lost by that either. */
  readonly killMs?: number
}

/** Stops a server and waits until none of its processes is there, its backends included. */
export const stopServer = async (server: ServerProcess, deadlines: StopDeadlines): Promise<StopResult> => {
  const tries = [
    ['SIGINT', deadlines.fastMs],
    ['SIGQUIT', deadlines.immediateMs ?? 0],
    ['SIGKILL', deadlines.killMs ?? 0],
  ] as const
  for (const [signal, ms] of tries) {
    if (ms === 0) continue
    if (server.alive()) signalProcess(server.pid, signal)
    const deadline = Date.now() + ms
    for (let pause = 5; Date.now() < deadline; pause = Math.min(pause * 1.5, 100)) {
      if (!server.alive() && processesOf(server.dataFolder).length === 0)
        return clusterState(server.dataFolder) === 'shut down' ? 'clean' : 'unclean'
      await Promise.race([sleep(pause), server.alive() ? server.exited : sleep(pause)])
    }
  }
  return 'still there'
}

const signalProcess = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Makes a running server read its configuration files again. */
export const reloadServer = (server: ServerProcess): void => {
  if (server.alive()) signalProcess(server.pid, 'SIGHUP')
}
