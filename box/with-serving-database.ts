/** For commands beside the control plane: its database, of one that runs or of none. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../runtime/log/log.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { BoxError } from './box-error.ts'
import type { BoxConfig } from './config/config.ts'
import { controlPlaneUrls } from './control-plane-databases.ts'
import { isLocked } from './folder-lock.ts'
import { describeHome, openHome } from './home-folder.ts'
import { readKeyring } from './master-key.ts'
import { noProgress } from './progress.ts'
import { postgresAccount, startControlPlane } from './start-control-plane.ts'

const STARTING_MS = 30_000

/** Where the database of a running control plane listens. */
const socketOfRunning = async (controlPlane: string): Promise<string> => {
  const until = performance.now() + STARTING_MS
  while (performance.now() < until) {
    const postmaster = findPostmaster(join(controlPlane, 'data'))
    if (postmaster?.status === 'ready') return postmaster.socketFolder
    await sleep(100)
  }
  throw new BoxError('The control plane is starting, but its database does not answer: try again')
}

/**
 * Does something with the URL of the control-plane database, as the role that serves. Where no control plane runs its database is
 * started for it, and stopped afterwards.
 * @throws BoxError when it cannot be reached or started
 */
export const withServingDatabase = async (config: BoxConfig, work: (url: string) => Promise<void>): Promise<void> => {
  const { home: folder, postgres: settings } = config
  if (existsSync(folder) && isLocked(describeHome(folder).root)) {
    const { secrets, controlPlane } = describeHome(folder)
    const socketFolder = await socketOfRunning(controlPlane)
    await work(controlPlaneUrls(secrets, { socketFolder, port: 5432 }).serving)
    return
  }
  const account = postgresAccount(settings.user)
  const home = await openHome(folder, account)
  try {
    const keyring = readKeyring(home.secrets, config)
    const { postgres, urls } = await startControlPlane(home, account, keyring, silentLog, noProgress)
    try {
      await work(urls.serving)
    } finally {
      if (postgres.adopted) postgres.leave()
      else await postgres.stop()
    }
  } finally {
    home.release()
  }
}
