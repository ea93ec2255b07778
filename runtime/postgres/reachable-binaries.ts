import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { syncFilesystem, temporaryName } from '../files/durable-file.ts'
import { binariesIn, type InstalledBuild, installedBuild, linkLibraries, type PostgresBinaries } from './binaries.ts'
import { canReach } from './reach.ts'
import type { RunAs } from './run-as.ts'

/**
 * The embedded Postgres where its account can run it: in place, or as a copy below `cacheFolder`, made once per build, when the
 * account cannot pass through to it (a checkout in a 0700 folder as root) or its library links cannot be made there (a
 * read-only installation). Modes of the original's folders are never touched.
 * @throws Error when the account cannot reach the cache folder either
 */
export const reachableBinaries = async (
  account: RunAs | undefined,
  cacheFolder: string,
  build: InstalledBuild = installedBuild(),
): Promise<PostgresBinaries> => {
  const original = binariesIn(build.root)
  if (isLinked(build.root) && (await canReach(original.postgres, account))) return original
  const copy = binariesIn(join(cacheFolder, `postgres-${build.version}`))
  if (!existsSync(copy.root)) await copyBuild(build.root, cacheFolder, copy.root)
  if (await canReach(copy.postgres, account)) return copy
  throw new Error(
    `Cannot run Postgres as "${account?.name ?? ''}": it can pass through neither to ${build.root} nor to ${cacheFolder}`,
  )
}

const isLinked = (root: string): boolean => {
  try {
    linkLibraries(root)
    return true
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/** Copies a build under a temporary name and renames it: several processes may do it at once, the first one wins. */
const copyBuild = async (root: string, cacheFolder: string, copy: string): Promise<void> => {
  await mkdir(cacheFolder, { recursive: true, mode: 0o755 })
  const work = temporaryName(copy)
  try {
    await promisify(execFile)('cp', ['-R', '-p', root, work], { timeout: 120_000 })
    await chmod(work, 0o755)
    linkLibraries(work)
    await syncFilesystem(work)
    await rename(work, copy).catch((error: unknown) => {
      if (!existsSync(copy)) throw error
    })
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
