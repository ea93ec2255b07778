/**
 * Writes per second with 1 and 16 writers, and the time from a write's start and from its answer to the watch event, on a durable
 * Postgres of its own. `bare` is the least that any design pays: one row updated and committed in one round trip.
 * Run: node bench/embedded-store.ts
 */
import { execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { keyOf } from '../lib/model/resource.ts'
import { migrateEmbeddedStore } from '../runtime/embedded/embedded-migrations.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { runAs } from '../runtime/postgres/run-as.ts'
import { uidOf } from '../runtime/store/resource-store-fixture.contract.ts'
import { newWidget, type Widget, widgets } from '../runtime/store/widget.contract.ts'
import { testBinaries } from '../testkit/server-files.ts'

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 4)
const REPEATS = 3
const SPEC = { parts: Array.from({ length: 10 }, (_, n) => `${n}`.repeat(40)), serial: 'x' }

/** A Postgres with its defaults, which are durable, behind a socket; returns its URL and how to end it. */
const startPostgres = async (): Promise<{ url: string; stop: () => Promise<void> }> => {
  const account = runAs(undefined)
  const identity = { cwd: '/', env: { LC_ALL: 'C' }, ...(account === undefined ? {} : account) }
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  const [data, socket] = [join(folder, 'data'), join(folder, 's')]
  mkdirSync(socket)
  if (account !== undefined) for (const path of [folder, socket]) chownSync(path, account.uid, account.gid)
  const { initdb, postgres } = await testBinaries()
  execFileSync(initdb, ['-D', data, '-U', 'postgres', '-A', 'trust', '--locale=C', '-E', 'UTF8'], {
    ...identity,
    stdio: 'ignore',
  })
  const child = spawn(postgres, ['-D', data, '-k', socket, '-c', 'listen_addresses='], { ...identity, stdio: 'ignore' })
  const exited = new Promise(resolve => child.once('exit', resolve))
  const url = (user: string, database: string): string =>
    `postgres://${user}@/${database}?host=${encodeURIComponent(socket)}`
  for (;;) {
    const root = new pg.Client({ connectionString: url('postgres', 'postgres') })
    try {
      await root.connect()
      await root.query('create role svc_store login')
      await root.query('create database svc_resources owner svc_store')
      await root.end()
      break
    } catch {
      await sleep(50)
    }
  }
  return {
    url: url('svc_store', 'svc_resources'),
    stop: async () => {
      child.kill('SIGINT')
      await exited
      rmSync(folder, { recursive: true })
    },
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0

/** Calls per second that this many callers make, one after another each. */
const rate = async (callers: number, call: (caller: number, n: number) => Promise<unknown>): Promise<number> => {
  const end = performance.now() + SECONDS * 1000
  let calls = 0
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let n = 0; performance.now() < end; n++, calls++) await call(caller, n)
    }),
  )
  return calls / SECONDS
}

const server = await startPostgres()
try {
  await migrateEmbeddedStore(server.url)
  const store = new EmbeddedResourceStore({ url: server.url, clientName: 'bench', maxConnections: 16 })
  const bare = new pg.Pool({ connectionString: server.url, max: 16 })
  await bare.query('create table bare (id int primary key, n int)')
  await bare.query('insert into bare select n, 0 from generate_series(0, 15) n')
  const made = await Promise.all(
    Array.from({ length: 16 }, (_, n) => store.create(widgets, newWidget('bench', `w${n}`, SPEC))),
  )
  const patch = (caller: number, n: number): Promise<Widget> => {
    const target = made[caller]!
    return store.patchStatus(widgets, keyOf(target), { seen: { times: n, by: String(caller) } }, uidOf(target))
  }
  for (const writers of [1, 16]) {
    const [store_, bare_]: [number[], number[]] = [[], []]
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      bare_.push(
        await rate(writers, caller =>
          bare.query({ name: 'bare', text: 'update bare set n = n + 1 where id = $1', values: [caller] }),
        ),
      )
      store_.push(await rate(writers, (caller, n) => patch(caller, n + repeat * 1e6)))
    }
    const [mine, least] = [median(store_), median(bare_)]
    console.log(
      `${writers} writers: ${mine.toFixed(0)} writes/s, bare ${least.toFixed(0)}/s, ratio ${(mine / least).toFixed(2)}`,
    )
  }
  let serial = 0
  const creates = await rate(1, () => store.create(widgets, newWidget('bench', `c${++serial}`, SPEC)))
  const [target] = made
  const noops = await rate(1, () => store.patch(widgets, keyOf(target!), { spec: SPEC }, uidOf(target!)))
  const gets = await rate(1, () => store.get(widgets, keyOf(target!)))
  console.log(
    `1 caller: ${creates.toFixed(0)} creates/s, ${noops.toFixed(0)} no-op patches/s, ${gets.toFixed(0)} gets/s`,
  )

  const abort = new AbortController()
  const { resourceVersion: from } = await store.list(widgets)
  const [sinceStart, sinceAnswer]: [number[], number[]] = [[], []]
  let heard: () => void = () => undefined
  const following = (async () => {
    for await (const event of store.watch(widgets, { from, signal: abort.signal }))
      if (event.type !== 'bookmark') heard()
  })()
  for (let n = 0; n < 500; n++) {
    const arrival = new Promise<number>(resolve => {
      heard = () => resolve(performance.now())
    })
    const start = performance.now()
    await patch(0, 1e9 + n)
    const answered = performance.now()
    const arrived = await arrival
    sinceStart.push(arrived - start)
    sinceAnswer.push(arrived - answered)
    await sleep(2)
  }
  abort.abort()
  await following
  for (const [what, values] of [
    ['call', sinceStart],
    ['answer', sinceAnswer],
  ] as const)
    console.log(
      `${what} -> watch event: p50 ${median(values).toFixed(2)} ms, p99 ${percentile(values, 0.99).toFixed(2)} ms`,
    )
  await Promise.all([store.close(), bare.end()])
} finally {
  await server.stop()
}
