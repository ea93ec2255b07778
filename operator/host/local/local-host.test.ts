import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { writeConfigFiles } from '../../../runtime/postgres/config-files.ts'
import { findPostmaster, processBirth, processesOf } from '../../../runtime/postgres/postmaster-pid.ts'
import { launchServer, stopServer, waitUntilReady } from '../../../runtime/postgres/server-process.ts'
import { COMMON_SETTINGS } from '../../../runtime/postgres/settings.ts'
import { openTestHost, TEST_SPEC } from '../../../testkit/local-host.ts'
import { serverFolder, testAccount, testBinaries, testFolder } from '../../../testkit/server-files.ts'
import { describeHost, type HostHarness } from '../host.contract.ts'
import type { InstanceRef } from '../host.ts'
import { folderName, hostFolders, instanceFolders } from './folders.ts'

/** Starts a server over kept data, on a socket of its own, asks and stops it. */
const queryRetained = async (retainedAt: string, sql: string): Promise<Record<string, unknown>[]> => {
  const folder = testFolder()
  const address = { socketFolder: serverFolder(folder, 's'), port: 5432 }
  const configFile = await writeConfigFiles(folder, testAccount(), {
    place: { listen: '', ...address, logFolder: serverFolder(folder, 'log'), name: 'retained' },
    settings: [COMMON_SETTINGS],
    accesses: [],
  })
  const server = await launchServer(await testBinaries(), testAccount(), {
    dataFolder: join(retainedAt, 'data'),
    configFile,
    startLog: join(folder, 'start.log'),
  })
  try {
    await waitUntilReady(server, address, 15_000)
    const client = new pg.Client({ host: address.socketFolder, port: 5432, user: 'postgres', database: 'app' })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end()
    }
  } finally {
    await stopServer(server, { fastMs: 10_000, immediateMs: 5000 })
  }
}

const makeHarness = async (): Promise<HostHarness> => {
  const home = testFolder()
  const folders = hostFolders(home)
  let host = await openTestHost(home)
  const dataOf = (ref: InstanceRef): string => instanceFolders(folders, ref).data
  return {
    host,
    spec: TEST_SPEC,
    deadlineMs: 20_000,
    restartControlPlane: async () => {
      await host.stopAll({ keepDatabases: true })
      return (host = await openTestHost(home))
    },
    crash: async ref => {
      const postmaster = findPostmaster(dataOf(ref))
      if (postmaster !== undefined) process.kill(postmaster.pid, 'SIGKILL')
    },
    processOf: async ref => {
      const [pid] = processesOf(dataOf(ref))
      return pid === undefined ? undefined : `${findPostmaster(dataOf(ref))?.pid ?? pid}/${processBirth(pid) ?? ''}`
    },
    query: async ({ endpoint }, credentials, sql) => {
      const { username: user, password } = credentials.app
      const client = new pg.Client({ host: endpoint!.host, port: endpoint!.port, user, password, database: 'app' })
      client.on('error', () => undefined)
      await client.connect()
      try {
        return (await client.query<Record<string, unknown>>(sql)).rows
      } finally {
        await client.end()
      }
    },
    queryRetained,
    traces: async ref => [
      ...[folders.environments, folders.trash].flatMap(folder =>
        readdirSync(folder).filter(name => name.includes(folderName(ref))),
      ),
      ...(existsSync(instanceFolders(folders, ref).sockets) ? ['sockets'] : []),
    ],
    dispose: () => host.stopAll({ keepDatabases: false }),
  }
}

describeHost('local', makeHarness)
