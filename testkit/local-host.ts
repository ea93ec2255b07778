/** A local host on a folder of its own, and what tests do to its databases. */
import { randomUUID } from 'node:crypto'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Host, InstanceRef, InstanceSpec, InstanceState, ObservedInstance } from '../operator/host/host.ts'
import { type LocalHost, type LocalHostConfig, openLocalHost } from '../operator/host/local/local-host.ts'
import type { CredentialSet } from '../runtime/credentials/credentials.ts'
import { silentLog } from '../runtime/log/log.ts'
import { testAccount, testBinaries, testFolder } from './server-files.ts'

export const TEST_SPEC: InstanceSpec = {
  memoryBytes: 128 * 2 ** 20,
  storageBytes: 2 ** 30,
  cpu: '500m',
  maxConnections: 10,
  image: undefined,
}

/** An instance nobody used before. */
export const newRef = (environmentId = 'main', uid: string = randomUUID()): InstanceRef => ({
  key: { namespace: 'svc-acme-app-x', name: `acme.app.${environmentId}` },
  uid,
  path: { organizationId: 'acme', projectId: 'app', environmentId },
})

export const TEST_CREDENTIALS: CredentialSet = {
  app: { username: 'app', password: 'app-password-of-tests' },
  ops: { username: 'svc_ops', password: 'ops-password-of-tests' },
}

let templates: string | undefined

/** All hosts of a test process share one folder of templates: making one takes a second. */
const shareTemplates = (home: string): void => {
  const link = join(home, 'templates')
  if (existsSync(link)) return
  if (templates === undefined || !existsSync(templates)) templates = testFolder()
  symlinkSync(templates, link)
}

/** Opens a local host with quick looks and short pauses. */
export const openTestHost = async (home: string, changes: Partial<LocalHostConfig> = {}): Promise<LocalHost> => {
  shareTemplates(home)
  return openLocalHost({
    home,
    secretsFolder: join(home, 'secrets'),
    binaries: await testBinaries(),
    account: testAccount(),
    reach: { listen: '127.0.0.1', host: '127.0.0.1' },
    ports: { first: 21_000, last: 30_999 },
    times: { tick: 20, probeEvery: 100, probeDeadline: 1000, firstRetry: 20, longestRetry: 500, aheadAfter: Infinity },
    log: silentLog,
    ...changes,
  })
}

/** Waits until an instance is in one of the states; says what it was instead. */
export const untilState = async (
  host: Host,
  ref: InstanceRef,
  states: readonly InstanceState[],
  deadlineMs = 15_000,
): Promise<ObservedInstance> => {
  const deadline = Date.now() + deadlineMs
  for (;;) {
    const observed = await host.observe(ref)
    if (states.includes(observed.state)) return observed
    if (Date.now() > deadline)
      throw new Error(`Expected ${states.join(' or ')}, it is ${JSON.stringify(observed)} after ${deadlineMs} ms`)
    await sleep(10)
  }
}

/** Starts an instance, waits until it runs, sets its passwords. */
export const bringUp = async (host: Host, ref: InstanceRef, spec = TEST_SPEC): Promise<ObservedInstance> => {
  await host.start(ref, spec)
  const observed = await untilState(host, ref, ['running'])
  await host.applyCredentials(ref, TEST_CREDENTIALS)
  return observed
}

/** Runs one statement in the environment's database through its endpoint. */
export const queryAs = async (
  host: Host,
  ref: InstanceRef,
  sql: string,
  role: 'app' | 'ops' = 'app',
  database = 'app',
): Promise<Record<string, unknown>[]> => {
  const { endpoint } = await host.observe(ref)
  const { username, password } = TEST_CREDENTIALS[role]
  const client = new pg.Client({ host: endpoint!.host, port: endpoint!.port, user: username, password, database })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}
