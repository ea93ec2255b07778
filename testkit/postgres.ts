/**
 * One throwaway Postgres 17 a test process: started at the first use, stopped and removed by the root hooks.
 * Sign-in is trust on a socket in a private folder; durability is off.
 */
import { execFile, spawn } from 'node:child_process'
import { chownSync, closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { childIdentity } from '../runtime/postgres/server-process.ts'
import { assertNoSecrets } from './secrets-of-tests.ts'
import { testAccount, testBinaries } from './server-files.ts'
import { newTemporaryFolder } from './test-folder.ts'

export interface TestCluster {
  readonly socketFolder: string
  readonly pid: number
  /** A connection URL through the socket. */
  url(database: string, role?: string): string
  /** Makes a database, cloned from a template where one is given, and names it. */
  createDatabase(options?: { template?: string; owner?: string }): Promise<string>
  stop(): Promise<void>
}

const SETTINGS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'shared_buffers=64MB',
  'max_connections=300',
  'autovacuum=off',
  'dynamic_shared_memory_type=mmap',
  // As careless as an operator may be: what fails or is slow is logged with all of its parameters.
  'log_min_error_statement=error',
  'log_parameter_max_length_on_error=-1',
  'log_parameter_max_length=-1',
  'log_min_duration_statement=250',
]

/** Starts one that is nobody else’s; its stop fails when a secret of a test stands in its log. */
export const startTestCluster = async (): Promise<TestCluster> => {
  const account = testAccount()
  const identity = childIdentity(account)
  const folder = newTemporaryFolder()
  const data = join(folder, 'data')
  const socketFolder = join(folder, 's')
  mkdirSync(socketFolder, { mode: 0o700 })
  if (account !== undefined) for (const path of [folder, socketFolder]) chownSync(path, account.uid, account.gid)
  const { initdb, postgres } = await testBinaries()
  await promisify(execFile)(
    initdb,
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-N', '--locale-provider=builtin', '--locale=C.UTF-8', '-E', 'UTF8'],
    identity,
  )
  const logFile = join(folder, 'server.log')
  const log = openSync(logFile, 'a')
  const child = spawn(
    postgres,
    ['-D', data, '-k', socketFolder, '-c', 'listen_addresses=', ...SETTINGS.flatMap(setting => ['-c', setting])],
    { ...identity, stdio: ['ignore', log, log] },
  )
  closeSync(log)
  child.unref()
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const url = (database: string, role = 'postgres'): string =>
    `postgres://${role}@/${database}?host=${encodeURIComponent(socketFolder)}`
  const withClient = async <T>(use: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client({ connectionString: url('postgres') })
    await client.connect()
    try {
      return await use(client)
    } finally {
      await client.end()
    }
  }
  for (let attempt = 0; ; attempt++) {
    try {
      await withClient(client => client.query('select 1'))
      break
    } catch (error) {
      if (attempt > 200) throw error
      await sleep(25)
    }
  }
  await withClient(client =>
    client.query('create role svc_owner login; create role svc_api login; create role svc_store login'),
  )
  let serial = 0
  return {
    socketFolder,
    pid: child.pid ?? 0,
    url,
    createDatabase: async options => {
      const name = `test_${process.pid}_${++serial}`
      const template = options?.template === undefined ? '' : ` template ${options.template}`
      const owner = options?.owner === undefined ? '' : ` owner ${options.owner}`
      await withClient(client => client.query(`create database ${name}${template}${owner}`))
      return name
    },
    stop: async () => {
      child.kill('SIGINT')
      await Promise.race([exited, sleep(5000).then(() => child.kill('SIGQUIT'))])
      const logged = readFileSync(logFile, 'utf8').split('\n')
      rmSync(folder, { recursive: true, force: true })
      assertNoSecrets({ 'the log of the database server': logged })
    },
  }
}

let running: Promise<TestCluster> | undefined

/** The process' cluster. */
export const testCluster = (): Promise<TestCluster> => (running ??= startTestCluster())

/** Stops the process' cluster if one was started; for the root hooks. */
export const stopTestCluster = async (): Promise<void> => {
  const stopped = running
  running = undefined
  await (await stopped)?.stop()
}
