/** The one way in which a Postgres of ours is started, whoever it is for. Every step may be the last one before a crash: it is repeated. */
import { chmod, chown, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { tryToListen } from '../net/try-to-listen.ts'
import type { PostgresBinaries } from './binaries.ts'
import { type ServerConfig, writeConfigFiles } from './config-files.ts'
import { portTaken, type StartFailure } from './last-words.ts'
import { processesOf } from './postmaster-pid.ts'
import type { RunAs } from './run-as.ts'
import { adoptServer, launchServer, type ServerProcess, type SocketAddress } from './server-process.ts'

/** What a start needs. The data is made, and nobody else starts it meanwhile. */
export interface ServerStart {
  readonly binaries: PostgresBinaries
  readonly account: RunAs | undefined
  /** Gets the configuration files. */
  readonly folder: string
  readonly dataFolder: string
  readonly startLog: string
  readonly config: ServerConfig
  /** Called right before a server is launched; not when one is there after all. */
  readonly launching?: () => Promise<void>
}

/** Why a server was not even launched. */
export class StartError extends Error {
  readonly failure: StartFailure

  constructor(failure: StartFailure) {
    super(failure.message)
    this.name = 'StartError'
    this.failure = failure
  }
}

/** Backends of a killed postmaster end within moments, once they notice. */
const ORPHANS_MS = 5000

/**
 * Launches a server, or answers the one that is there after all.
 * @throws StartError when its port is taken or its predecessor's processes stay; other errors for what the system refuses
 */
export const startServer = async (start: ServerStart): Promise<ServerProcess> => {
  const { binaries, account, folder, dataFolder, startLog, config } = start
  const { listen, port, logFolder, socketFolder } = config.place
  for (const path of [logFolder, socketFolder]) await ownFolder(path, account)
  const found = await clearLeftovers(dataFolder, { socketFolder, port })
  if (found !== undefined) return found
  if (listen !== '') {
    const refusal = await tryToListen({ host: listen, port })
    if (refusal?.code === 'EADDRINUSE') throw new StartError(portTaken(port))
    if (refusal !== undefined) throw refusal
  }
  await start.launching?.()
  const configFile = await writeConfigFiles(folder, account, config)
  return launchServer(binaries, account, { dataFolder, configFile, startLog })
}

/** A folder that belongs to Postgres' account alone. */
const ownFolder = async (path: string, account: RunAs | undefined): Promise<void> => {
  await mkdir(path, { recursive: true, mode: 0o700 })
  // The folder may lie below /tmp: what somebody else put there, a link too, is not ours to use.
  const found = await lstat(path)
  const owners = [process.getuid?.(), account?.uid]
  if (!found.isDirectory() || (process.getuid !== undefined && !owners.includes(found.uid)))
    throw new Error(`Cannot use ${path}: it is not a folder of ours`)
  if (account !== undefined) await chown(path, account.uid, account.gid)
  await chmod(path, 0o700)
}

/**
 * Waits for backends of a killed postmaster to end, then removes its lock files; answers the server if one is there after all,
 * launched by a control plane that died before it had written its own lock file. Postgres believes a lock file whose number
 * belongs to any living process of its account: after a machine restart that may be another environment's server. We know
 * better, because no process works in the data folder.
 */
const clearLeftovers = async (
  dataFolder: string,
  { socketFolder, port }: SocketAddress,
): Promise<ServerProcess | undefined> => {
  const deadline = Date.now() + ORPHANS_MS
  while (processesOf(dataFolder).length > 0) {
    const found = adoptServer(dataFolder)
    if (found !== undefined) return found
    if (Date.now() > deadline)
      throw new StartError({
        reason: 'StartFailed',
        message: 'Processes of the server before are still there; waiting for them to end',
      })
    await sleep(20)
  }
  if (process.platform !== 'linux') return undefined
  await rm(join(dataFolder, 'postmaster.pid'), { force: true })
  for (const name of await readdir(socketFolder))
    if (name.startsWith(`.s.PGSQL.${port}`)) await rm(join(socketFolder, name), { force: true })
  return undefined
}
