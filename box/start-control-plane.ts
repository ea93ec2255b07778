/** The control plane's databases from a folder to URLs that can be used: Postgres, roles, migrations. */
import { join } from 'node:path'
import { MIGRATIONS_FOLDER } from '../apiserver/store/migrations.ts'
import { migrateEmbeddedStore } from '../runtime/embedded/embedded-migrations.ts'
import type { Log } from '../runtime/log/log.ts'
import type { PostgresBinaries } from '../runtime/postgres/binaries.ts'
import { migrate, readMigrations } from '../runtime/postgres/migrate.ts'
import { reachableBinaries } from '../runtime/postgres/reachable-binaries.ts'
import { type RunAs, runAs } from '../runtime/postgres/run-as.ts'
import { untilBack } from '../runtime/postgres/until-back.ts'
import { BoxError } from './box-error.ts'
import { type ControlPlaneUrls, controlPlaneUrls, ensureControlPlaneDatabases } from './control-plane-databases.ts'
import { type ControlPlanePostgres, startControlPlanePostgres } from './control-plane-postgres.ts'
import type { HomeFolder } from './home-folder.ts'
import type { Keyring } from './master-key.ts'
import type { Progress } from './progress.ts'
import { proveMasterKey } from './prove-master-key.ts'

/** How long a start waits for a control-plane Postgres that dies while it starts. */
export const DATABASE_BACK_MS = 30_000

/** Who Postgres runs as. @throws BoxError when there is no such account */
export const postgresAccount = (user: string | undefined): RunAs | undefined => {
  try {
    return runAs(user)
  } catch (cause) {
    throw new BoxError(`${(cause as Error).message}; set SERVICE_POSTGRES_USER`, { cause })
  }
}

export interface ControlPlane {
  readonly urls: ControlPlaneUrls
  readonly postgres: ControlPlanePostgres
  readonly binaries: PostgresBinaries
}

/**
 * Starts or adopts the control-plane Postgres and brings its databases up to date.
 * @throws BoxError, for a wrong master key before anything is changed; MigrationError for databases of a newer version; what was started is stopped then
 */
export const startControlPlane = async (
  home: Pick<HomeFolder, 'controlPlane' | 'dataRoot' | 'secrets'>,
  account: RunAs | undefined,
  keyring: Keyring,
  log: Log,
  progress: Progress,
): Promise<ControlPlane> => {
  const binaries = await progress.during('Preparing Postgres', () =>
    reachableBinaries(account, join(home.dataRoot, 'cache')).catch((cause: unknown) => {
      throw new BoxError((cause as Error).message, { cause })
    }),
  )
  const postgres = await progress.during('Starting the control-plane database', () =>
    startControlPlanePostgres({ folder: home.controlPlane, account, binaries, log }),
  )
  try {
    // Each step may be repeated, and Postgres is brought back should it die meanwhile.
    await untilBack(() => proveMasterKey(postgres.address, keyring, home.dataRoot), DATABASE_BACK_MS)
    await untilBack(() => ensureControlPlaneDatabases(home.secrets, postgres.address), DATABASE_BACK_MS)
    const urls = controlPlaneUrls(home.secrets, postgres.address)
    await progress.during('Bringing the databases up to date', async () => {
      const migrations = await readMigrations(MIGRATIONS_FOLDER)
      await untilBack(() => migrate(urls.owner, migrations, log), DATABASE_BACK_MS)
      await untilBack(() => migrateEmbeddedStore(urls.store, log), DATABASE_BACK_MS)
    })
    return { urls, postgres, binaries }
  } catch (error) {
    if (postgres.adopted) postgres.leave()
    else await postgres.stop()
    throw error
  }
}
