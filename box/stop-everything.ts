/** Stops whatever runs on a home, with or without a living control plane: `make down`, and before `make reset`. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hostFolders } from '../operator/host/local/folders.ts'
import { adoptServer, stopServer } from '../runtime/postgres/server-process.ts'
import { BoxError } from './box-error.ts'
import { stopControlPlanePostgres } from './control-plane-postgres.ts'
import { type FolderLock, isLocked, lockHolder, tryLockFolder } from './folder-lock.ts'
import { describeHome } from './home-folder.ts'
import type { Progress } from './progress.ts'

/** A control plane that drains its calls and stops its databases takes seconds; this is for the one that hangs. */
const STOP_DEADLINE_MS = 90_000
const POLL_MS = 50
const ENVIRONMENT_STOP = { fastMs: 60_000, immediateMs: 10_000, killMs: 5000 } as const

/** Asks a living control plane to stop, and waits for it. */
const stopControlPlane = async (root: string): Promise<boolean> => {
  if (!isLocked(root)) return false
  const until = performance.now() + STOP_DEADLINE_MS
  let asked: number | undefined
  while (isLocked(root)) {
    const pid = lockHolder(root)
    if (pid !== undefined && pid !== asked) {
      process.kill(pid, 'SIGTERM')
      asked = pid
    }
    if (performance.now() > until)
      throw new BoxError(
        `The control plane on ${root} does not stop (pid ${pid ?? 'unknown'}): end it with kill -9, then try again; databases are safe`,
      )
    await sleep(POLL_MS)
  }
  return true
}

/** Stops every environment's Postgres. What is wanted of them stays written down: the next start brings them back. */
const stopEnvironments = async (dataRoot: string): Promise<void> => {
  const { environments } = hostFolders(dataRoot)
  if (!existsSync(environments)) return
  const stopped = readdirSync(environments).map(async name => {
    const server = adoptServer(join(environments, name, 'data'))
    if (server === undefined || (await stopServer(server, ENVIRONMENT_STOP)) !== 'still there') return
    throw new BoxError(`Cannot stop the database in ${join(environments, name)}: process ${server.pid} stays`)
  })
  const failed = (await Promise.allSettled(stopped)).find(result => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/**
 * Stops the control plane, then every database that is left, and holds the folder while it does.
 * @returns the lock of the folder, for who wants to go on with it
 * @throws BoxError when something does not stop
 */
export const stopEverything = async (folder: string, progress: Progress): Promise<FolderLock> => {
  const home = describeHome(folder)
  await progress.during('Stopping the control plane', () => stopControlPlane(home.root))
  const lock = tryLockFolder(home.root)
  if (lock === undefined) throw new BoxError(`Somebody started the control plane on ${home.root} meanwhile: try again`)
  try {
    await progress.during('Stopping the databases', async () => {
      await stopEnvironments(home.dataRoot)
      await stopControlPlanePostgres(home.controlPlane)
    })
    return lock
  } catch (error) {
    lock.release()
    throw error
  }
}
