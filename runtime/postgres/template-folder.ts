/**
 * Template folders: a Postgres cluster initialized and prepared once, then copied. Keyed by Postgres' version and by what was
 * done to it, so that another recipe makes another template and never changes one that is there.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chown, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { syncFilesystem, syncFolder, temporaryName } from '../files/durable-file.ts'
import { type PostgresBinaries, postgresVersion } from './binaries.ts'
import { writeConfigFiles } from './config-files.ts'
import { isInitialized } from './create-data-folder.ts'
import { endSession } from './end-session.ts'
import type { RunAs } from './run-as.ts'
import {
  childIdentity,
  launchServer,
  type SocketAddress,
  type StopResult,
  stopServer,
  waitUntilReady,
} from './server-process.ts'
import { COMMON_SETTINGS, type Settings } from './settings.ts'

const CONNECT_TIMEOUT_MS = 10_000
const STATEMENT_TIMEOUT_MS = 60_000

/** Fixed for every cluster of ours: the same collation on every build, checksums, SCRAM. */
const INITDB_ARGS = [
  '--username=postgres',
  '--data-checksums',
  '--locale-provider=builtin',
  '--locale=C.UTF-8',
  '--encoding=UTF8',
  '--auth-local=peer',
  '--auth-host=scram-sha-256',
  '--no-sync',
  '--no-instructions',
]

/** What a template holds beyond an empty cluster. */
export interface TemplateRecipe {
  /** Short and for people: part of the folder's name. */
  readonly name: string
  /** Statements by database, run in order as the superuser, each alone and in a session of its own. */
  readonly statements: readonly { readonly database: string; readonly sql: string }[]
}

export interface Template {
  readonly folder: string
  /** Version and digest of what made it. */
  readonly key: string
}

/**
 * The template folder of a recipe below `templatesFolder`, made if it is missing (about a second). Safe when several
 * processes do it at once and when one dies half way.
 * @throws Error when initdb or a statement fails
 */
export const ensureTemplate = async (
  binaries: PostgresBinaries,
  account: RunAs | undefined,
  templatesFolder: string,
  recipe: TemplateRecipe,
): Promise<Template> => {
  const version = await postgresVersion(binaries)
  const digest = createHash('sha256')
    .update(JSON.stringify([version, INITDB_ARGS, recipe.statements]))
    .digest('hex')
  const key = `${version}-${recipe.name}-${digest.slice(0, 12)}`
  const folder = join(templatesFolder, key)
  if (isInitialized(folder)) return { folder, key }
  await mkdir(templatesFolder, { recursive: true, mode: 0o711 })
  const work = temporaryName(folder)
  try {
    await mkdir(work, { mode: 0o700 })
    if (account !== undefined) await chown(work, account.uid, account.gid)
    const data = join(work, 'data')
    await promisify(execFile)(binaries.initdb, ['-D', data, ...INITDB_ARGS], {
      ...childIdentity(account),
      timeout: 120_000,
    })
    if (recipe.statements.length > 0) await prepare(binaries, account, work, data, recipe)
    await syncFilesystem(work)
    await rename(data, folder).catch((error: unknown) => {
      // Another process was faster: its folder is as good as ours.
      if (!isInitialized(folder)) throw error
    })
    await syncFolder(templatesFolder)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return { folder, key }
}

/** Starts the new cluster for nobody but us, runs the statements, stops it cleanly. */
const prepare = async (
  binaries: PostgresBinaries,
  account: RunAs | undefined,
  work: string,
  dataFolder: string,
  recipe: TemplateRecipe,
): Promise<void> => {
  const address = { socketFolder: await privateSocketFolder(account), port: 5432 }
  try {
    const configFile = await writeConfigFiles(work, account, {
      place: { listen: '', ...address, logFolder: 'log', name: 'svc template' },
      settings: [COMMON_SETTINGS, PREPARING],
      accesses: [],
    })
    const server = await launchServer(binaries, account, { dataFolder, configFile, startLog: join(work, 'start.log') })
    let stopped: StopResult
    try {
      await waitUntilReady(server, address, 60_000)
      await runStatements(address, recipe)
    } finally {
      stopped = await stopServer(server, { fastMs: 30_000, immediateMs: 5000, killMs: 5000 })
    }
    if (stopped !== 'clean') throw new Error(`Cannot make the template "${recipe.name}": Postgres stopped "${stopped}"`)
    await rm(join(dataFolder, 'postmaster.opts'), { force: true })
  } finally {
    await rm(address.socketFolder, { recursive: true, force: true })
  }
}

/** Nothing has to survive a crash until the template is whole and synced. */
const PREPARING: Settings = {
  logging_collector: false,
  fsync: false,
  archive_mode: 'off',
  max_connections: 10,
  shared_buffers: '16MB',
}

/** A folder with a short name that only the server's account and root can enter. */
const privateSocketFolder = async (account: RunAs | undefined): Promise<string> => {
  const folder = await mkdtemp('/tmp/svc-template-')
  if (account !== undefined) await chown(folder, account.uid, account.gid)
  return folder
}

const runStatements = async (address: SocketAddress, recipe: TemplateRecipe): Promise<void> => {
  for (const { database, sql } of recipe.statements) {
    const client = new pg.Client({
      host: address.socketFolder,
      port: address.port,
      user: 'postgres',
      database,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: STATEMENT_TIMEOUT_MS,
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      await client.query(sql)
    } finally {
      await endSession(client)
    }
  }
}
