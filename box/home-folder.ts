/**
 * The folder of a single box, SERVICE_HOME: what is where, and whether this version may use it.
 * Root's folders are often closed to the account that Postgres runs as; then what Postgres needs lives under
 * /var/lib/svc and the file `location` says so. Modes of folders that we did not make are never changed.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { POSTGRES_MAJOR } from '../lib/model/environment.ts'
import { dataHome } from '../runtime/postgres/data-home.ts'
import type { RunAs } from '../runtime/postgres/run-as.ts'
import { BoxError } from './box-error.ts'
import { type FolderLock, isLocked, lockHolder, tryLockFolder } from './folder-lock.ts'
import { writeSecret } from './write-secret.ts'

/** Raised when a folder of this version could not be read by the one before. */
const LAYOUT = 1

/** The folder, locked for this process. */
export interface HomeFolder {
  readonly root: string
  /** Where Postgres' folders are: `root`, or a folder of its own. */
  readonly dataRoot: string
  readonly secrets: string
  readonly controlPlane: string
  readonly logFile: string
  readonly credentialsFile: string
  release(): void
}

/** What stands in layout.json. */
interface Layout {
  readonly layout: number
  readonly postgresMajor: number
}

const readLayout = (root: string): Layout | undefined => {
  const path = join(root, 'layout.json')
  if (!existsSync(path)) return undefined
  try {
    const { layout, postgresMajor } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Layout>
    if (typeof layout === 'number' && typeof postgresMajor === 'number') return { layout, postgresMajor }
  } catch {
    // Falls through: what cannot be read is not ours to repair.
  }
  throw new BoxError(`Cannot use ${root}: its layout.json is damaged; restore it from a backup, or set SERVICE_HOME`)
}

/** Files that may be there before the first start has written its layout. */
const OURS_BEFORE_LAYOUT = new Set(['lock', 'holder.pid', 'control-plane.log'])

/** @throws BoxError when the folder belongs to a newer version, another Postgres, or something else */
const checkLayout = (root: string): 'new' | 'known' => {
  const layout = readLayout(root)
  if (layout === undefined) {
    const foreign = readdirSync(root).find(name => !OURS_BEFORE_LAYOUT.has(name) && !name.endsWith('.tmp'))
    if (foreign !== undefined)
      throw new BoxError(`Cannot use ${root}: it is not empty ("${foreign}") and not ours; set SERVICE_HOME elsewhere`)
    return 'new'
  }
  if (layout.layout > LAYOUT)
    throw new BoxError(
      `Cannot use ${root}: a newer version wrote it (layout ${layout.layout}, this one knows ${LAYOUT}); start that version, or set SERVICE_HOME elsewhere`,
    )
  if (layout.postgresMajor !== POSTGRES_MAJOR) throw otherMajor(root, String(layout.postgresMajor))
  return 'known'
}

const otherMajor = (root: string, major: string): BoxError =>
  new BoxError(
    `Cannot use ${root}: it holds data of Postgres ${major}, this version runs ${POSTGRES_MAJOR}; start the version that wrote it, or set SERVICE_HOME elsewhere`,
  )

const takeLock = (folder: string): FolderLock => {
  const lock = tryLockFolder(folder)
  if (lock !== undefined) return lock
  const pid = lockHolder(folder)
  throw new BoxError(
    `Already running on ${folder}${pid === undefined ? '' : ` (pid ${pid})`}: stop it with "make down", or set SERVICE_HOME to another folder`,
  )
}

const findDataRoot = async (root: string, account: RunAs | undefined): Promise<string> => {
  try {
    return await dataHome(root, account)
  } catch (cause) {
    throw new BoxError((cause as Error).message, { cause })
  }
}

/** The folders of a home that exists, whatever its state; for stopping and deleting. */
export const describeHome = (folder: string): Omit<HomeFolder, 'release'> => {
  const root = realpathSync(folder)
  const location = join(root, 'location')
  const dataRoot = existsSync(location) ? readFileSync(location, 'utf8').trim() : root
  return {
    root,
    dataRoot,
    secrets: join(root, 'secrets'),
    controlPlane: join(dataRoot, 'control-plane'),
    logFile: join(root, 'control-plane.log'),
    credentialsFile: join(root, 'credentials.json'),
  }
}

/** Whether a control plane runs on this folder. */
export const isHomeInUse = (folder: string): boolean => isLocked(folder)

/**
 * Makes the folder if need be and judges it; changes nothing in one that is there.
 * @throws BoxError when it holds what this version must not touch
 */
export const prepareHome = (folder: string, account: RunAs | undefined): void => {
  if (existsSync(folder)) {
    checkLayout(realpathSync(folder))
    return
  }
  mkdirSync(dirname(folder), { recursive: true })
  mkdirSync(folder, { mode: 0o700 })
  // As root, Postgres' account must pass through to its own folders; what is secret has its own mode.
  if (account !== undefined) chmodSync(folder, 0o711)
}

/**
 * Takes a folder for this process, making it at the first start.
 * @throws BoxError when another process has it, or when it holds what this version must not touch; nothing is changed then
 */
export const openHome = async (folder: string, account: RunAs | undefined): Promise<HomeFolder> => {
  prepareHome(folder, account)
  const root = realpathSync(folder)
  const locks = [takeLock(root)]
  try {
    if (checkLayout(root) === 'new')
      writeSecret(join(root, 'layout.json'), `${JSON.stringify({ layout: LAYOUT, postgresMajor: POSTGRES_MAJOR })}\n`)
    const dataRoot = await findDataRoot(root, account)
    // A copy of the folder would share the place outside: that place has a lock of its own.
    if (dataRoot !== root) locks.push(takeLock(dataRoot))
    const home = describeHome(root)
    mkdirSync(home.secrets, { recursive: true, mode: 0o700 })
    const version = join(home.controlPlane, 'data', 'PG_VERSION')
    if (existsSync(version)) {
      const major = readFileSync(version, 'utf8').trim()
      if (major !== String(POSTGRES_MAJOR)) throw otherMajor(root, major)
    }
    return { ...home, release: () => locks.forEach(lock => lock.release()) }
  } catch (error) {
    for (const lock of locks) lock.release()
    throw error
  }
}
