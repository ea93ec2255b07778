/**
 * Server CPU per GET of an environment, as a ratio to the same server that looks its caller up once and for all, and to a bare express
 * handler that sends the same row of the same select. Each server is a process of its own and they take turns, so that both see the same machine. Limits are off; the log is
 * on and goes nowhere. Run: node bench/get-environment.ts [seconds a round] [rounds]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import autocannon from 'autocannon'
import express from 'express'
import pg from 'pg'
import { Registry } from 'prom-client'
import { makeUser } from '../apiserver/commands/make-user.ts'
import { apiServerConfig } from '../apiserver/config/config.ts'
import { Admission } from '../apiserver/http/admit.ts'
import { startApiServer } from '../apiserver/start.ts'
import type { Database } from '../apiserver/store/database.ts'
import { findEnvironment, insertEnvironment } from '../apiserver/store/environments.ts'
import { putMembership } from '../apiserver/store/memberships.ts'
import { insertOrganization } from '../apiserver/store/organizations.ts'
import { insertProject } from '../apiserver/store/projects.ts'
import type { Sql } from '../apiserver/store/sql.ts'
import { environmentView } from '../apiserver/views/environment-view.ts'
import { projectNamespace } from '../crds/metadata.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { jsonLog } from '../runtime/log/json-log.ts'
import { lineBuffer } from '../runtime/log/line-buffer.ts'
import { controlPlaneDatabase } from '../testkit/control-plane-database.ts'
import { storeDatabase } from '../testkit/embedded-store.ts'
import { memoryCredentials } from '../testkit/memory-credentials.ts'
import { stopTestCluster } from '../testkit/postgres.ts'

const PATH = { organizationId: 'acme', projectId: 'shop', environmentId: 'main' }
const URL_PATH = '/v1/organizations/acme/projects/shop/environments/main'
const CONNECTIONS = 16
/** Of a database that is gone afterwards; two servers use it. */
const MASTER_KEY = Buffer.alloc(32, 1)
const NO_LIMITS = {
  requestsPerMinute: 0,
  mutationsPerMinute: 0,
  connectionReadsPerMinute: 0,
  verificationsPerMinute: 0,
  anonymousPerMinute: 0,
  burst: 1,
}

const serveApi = async (databaseUrl: string, storeUrl: string): Promise<string> => {
  const sink = createWriteStream('/dev/null')
  const server = await startApiServer(
    {
      ...apiServerConfig({}),
      listen: { host: '127.0.0.1', port: 0 },
      limits: NO_LIMITS,
      databaseUrl,
      masterKey: MASTER_KEY,
    },
    {
      store: new EmbeddedResourceStore({ url: storeUrl, clientName: 'svc-apiserver' }),
      credentials: memoryCredentials(),
      log: jsonLog(lineBuffer(sink)),
      registry: new Registry(),
    },
  )
  await server.ready
  return server.url
}

/** Whoever the first caller is, every later one is: what is left is the same handler without authentication. */
const authenticateOnce = (): void => {
  const gate = Admission.prototype
  const asked = { present: Reflect.get(gate, 'present'), principal: Reflect.get(gate, 'principal') }
  let presented: ReturnType<typeof asked.present> | undefined
  let known: ReturnType<typeof asked.principal> | undefined
  gate.present = function (this: Admission, ...args) {
    return (presented ??= asked.present.apply(this, args))
  }
  gate.principal = function (this: Admission, ...args) {
    return (known ??= asked.principal.apply(this, args))
  }
}

const serveBare = async (databaseUrl: string): Promise<string> => {
  const pool = new pg.Pool({ connectionString: databaseUrl })
  // The select is ours, sent as the plainest program would: prepared once, through a pool.
  const sql: Sql = {
    rows: async <Row>(text: string, values?: readonly unknown[]) =>
      (await pool.query({ name: 'bare', text, values: [...(values ?? [])] })).rows as Row[],
    row: async <Row>(text: string, values?: readonly unknown[]) => (await sql.rows<Row>(text, values))[0],
  }
  const app = express()
  app.get('/v1/organizations/:org/projects/:project/environments/:env', async (request, response) => {
    const { org, project, env } = request.params
    const row = await findEnvironment(sql, { organizationId: org, projectId: project, environmentId: env })
    if (row === undefined) response.status(404).end()
    else response.json(environmentView(row))
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`
}

/** The serving processes: tell their URL, then answer each message with the CPU microseconds used so far. */
const serve = async ([kind = '', databaseUrl = '', storeUrl = '']: readonly string[]): Promise<void> => {
  if (kind === 'open') authenticateOnce()
  const url = kind === 'bare' ? await serveBare(databaseUrl) : await serveApi(databaseUrl, storeUrl)
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.(user + system)
  })
  process.send?.(url)
}

interface Server {
  readonly child: ChildProcess
  readonly url: string
}

const start = async (...args: string[]): Promise<Server> => {
  const child = fork(import.meta.filename, ['--serve', ...args])
  const [url] = (await once(child, 'message')) as [string]
  return { child, url }
}

const cpuOf = async ({ child }: Server): Promise<number> => {
  const told = once(child, 'message')
  child.send('cpu')
  return ((await told) as [number])[0]
}

interface Round {
  readonly microseconds: number
  readonly perSecond: number
}

const round = async (server: Server, token: string, duration: number): Promise<Round> => {
  const before = await cpuOf(server)
  const result = await autocannon({
    url: `${server.url}${URL_PATH}`,
    connections: CONNECTIONS,
    duration,
    headers: { authorization: `Bearer ${token}` },
  })
  const used = (await cpuOf(server)) - before
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} answers were not 2xx`)
  return { microseconds: used / result.requests.total, perSecond: result.requests.average }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

const seed = async (database: Database): Promise<string> => {
  const { userId, token } = await makeUser(database, {
    email: undefined,
    name: 'bench',
    isOperator: true,
    tokenName: 'bench',
  })
  await database.transaction(async sql => {
    const { organizationId, projectId } = PATH
    const namespace = projectNamespace(organizationId, projectId)
    await insertOrganization(sql, organizationId, 'Acme')
    await putMembership(sql, organizationId, userId, 'owner')
    await insertProject(sql, {
      organizationId,
      projectId,
      region: 'local',
      postgresMajor: 17,
      protectProduction: false,
      namespace,
    })
    await insertEnvironment(sql, {
      ...PATH,
      kind: 'staging',
      dataMode: 'snapshot',
      region: 'local',
      postgresMajor: 17,
      ttlHours: null,
      expiresAt: null,
      deletionProtection: false,
      deletionPolicy: 'Delete',
      sourceEnvironmentId: null,
      namespace,
      resourceName: environmentName(PATH),
    })
  })
  return token
}

/** The ratio and the figures it comes from. */
const compare = async (seconds: number, rounds: number): Promise<void> => {
  const plane = await controlPlaneDatabase()
  const token = await seed(plane.database)
  const url = plane.url('svc_api')
  const api = await start('api', url, await storeDatabase())
  const open = await start('open', url, await storeDatabase())
  const bare = await start('bare', url)
  const servers = [api, open, bare]
  try {
    for (const server of servers) await round(server, token, 2) // warm
    const ratios = { open: [] as number[], bare: [] as number[] }
    for (let at = 0; at < rounds; at++) {
      const ours = await round(api, token, seconds)
      const without = await round(open, token, seconds)
      const theirs = await round(bare, token, seconds)
      ratios.open.push(ours.microseconds / without.microseconds)
      ratios.bare.push(ours.microseconds / theirs.microseconds)
      console.log(
        [['api', ours] as const, ['without authentication', without] as const, ['bare express', theirs] as const]
          .map(
            ([name, { microseconds, perSecond }]) => `${name} ${microseconds.toFixed(0)} µs, ${perSecond.toFixed(0)}/s`,
          )
          .join('   '),
      )
    }
    console.log(
      `CPU ratio to the same handler without authentication, median of ${rounds}: ${median(ratios.open).toFixed(2)} (aim 1.6)`,
    )
    console.log(`… to bare express: ${median(ratios.bare).toFixed(2)} (aim 1.6)`)
  } finally {
    for (const { child } of servers) child.kill()
    await plane.database.stop()
    await stopTestCluster()
  }
}

const [first, ...rest] = process.argv.slice(2)
if (first === '--serve') await serve(rest)
else await compare(Number(first ?? 5), Number(rest[0] ?? 5))
