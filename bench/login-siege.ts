/**
 * What others notice while passwords are guessed: GETs of an environment before, during and after a flood of bad sign-ins from
 * many addresses, good users who sign in meanwhile, and the memory of the server and of its process that checks passwords.
 * Run: node bench/login-siege.ts [guesses a second] [seconds] [floods]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeUser } from '../apiserver/commands/make-user.ts'
import { ApiClient } from '../testkit/api-client.ts'
import { type ApiProcess, type ProcessPlace, processPlace, startApiProcess } from '../testkit/api-process.ts'
import { stopTestCluster } from '../testkit/postgres.ts'
import { passwordAccounts, TEST_PASSWORD } from '../testkit/sign-in.ts'
import { type Flood, type FloodAnswers, floodSignIns } from '../testkit/sign-in-flood.ts'
import { quantile } from './figure.ts'
import { residentMib } from './process-cost.ts'

const GETS_A_SECOND = 50
const ADDRESSES = 1200
const ACCOUNTS = 200
const GOOD_EVERY_MS = 4000

const environment = { org: 'acme', project: 'shop', env: 'main' }

/** Somebody with a token, and an environment to ask about. */
const someone = async ({ plane }: ProcessPlace, { url }: ApiProcess): Promise<ApiClient> => {
  const options = { email: undefined, name: 'bench', isOperator: true, tokenName: 'bench' }
  const client = new ApiClient(url, (await makeUser(plane.database, options)).token)
  const { org, project, env } = environment
  await client.call('putOrganization', { params: { org }, body: { name: 'Acme' } })
  await client.call('putProject', { params: { org, project }, body: { region: 'local', postgres_major: 17 } })
  const body = { organization_id: org, project_id: project, environment_id: env, kind: 'staging' }
  const made = await client.call('createEnvironment', { body })
  if (made.status !== 202) throw new Error(made.text)
  return client
}

/** Milliseconds of GETs at an even pace, each from the moment at which it was due. */
const askFor = async (client: ApiClient, seconds: number): Promise<number[]> => {
  const began = performance.now()
  const times: number[] = []
  const all: Promise<void>[] = []
  for (let n = 0; n < GETS_A_SECOND * seconds; n++) {
    const due = began + (n * 1000) / GETS_A_SECOND
    await sleep(Math.max(0, due - performance.now()))
    const one = async (): Promise<void> => {
      const { status } = await client.call('getEnvironment', { params: environment })
      if (status !== 200) throw new Error(`A GET was answered ${status}`)
      times.push(performance.now() - due)
    }
    all.push(one())
  }
  await Promise.all(all)
  return times
}

const placeOf = (n: number): string => `203.0.113.${n}`

/** What it took somebody who knows the password to get in. */
interface Entry {
  readonly ms: number
  /** How often they were told to come again. */
  readonly refusals: number
}

/** Signs in, asking again as it is told. */
const signIn = async (url: string, email: string, address: string): Promise<Entry> => {
  const began = performance.now()
  for (let refusals = 0; ; refusals++) {
    const body = { email, password: TEST_PASSWORD }
    const headers = { 'X-Forwarded-For': address }
    // The client of tests would come again by itself, and sooner than it is told.
    const answer = await new ApiClient(url).call('signIn', { body, headers, patient: false })
    if (answer.status === 200) return { ms: performance.now() - began, refusals }
    await sleep(1000 * Number(answer.headers.get('retry-after') ?? assertBusy(answer.status)))
  }
}
const assertBusy = (status: number): never => {
  throw new Error(`A good sign-in was answered ${status}`)
}

/** Of the server and its children, MiB. */
const memoryOf = (pid: number): number => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return [pid, ...children.map(Number)].reduce((sum, each) => sum + residentMib(each), 0)
}

const line = (what: string, times: readonly number[]): string =>
  `  GET, ${what}: p50 ${quantile(times, 0.5).toFixed(1)} ms, p99 ${quantile(times, 0.99).toFixed(1)} ms (n = ${times.length})`

/** One flood, between two halves of its time without. @returns p99 of GETs during it to p99 without */
const round = async (
  { place, server, client }: { readonly place: ProcessPlace; readonly server: ApiProcess; readonly client: ApiClient },
  { number, perSecond, seconds }: { readonly number: number; readonly perSecond: number; readonly seconds: number },
): Promise<number> => {
  const emails = await passwordAccounts(place.plane, ACCOUNTS)
  const each = Math.ceil((seconds * 1000) / GOOD_EVERY_MS)
  const [known, strangers] = [await passwordAccounts(place.plane, each), await passwordAccounts(place.plane, each)]
  const addressOf = (n: number): string => placeOf(number * each + n)
  for (const [n, email] of known.entries()) await signIn(server.url, email, addressOf(n))
  await askFor(client, 5) // warm
  const before = await askFor(client, seconds / 2)
  const idle = memoryOf(server.pid)
  let memory = idle
  const flood = fork(import.meta.filename, ['--flood'])
  try {
    flood.send({ url: server.url, perSecond, seconds, addresses: ADDRESSES, emails } satisfies Flood)
    const answered = once(flood, 'message')
    const watch = setInterval(() => (memory = Math.max(memory, memoryOf(server.pid))), 500)
    const [during, ...waits] = await Promise.all([
      askFor(client, seconds),
      ...[...known, ...strangers].map(async (email, n) => {
        await sleep((n % known.length) * GOOD_EVERY_MS)
        return signIn(server.url, email, addressOf(n))
      }),
    ])
    clearInterval(watch)
    const [answers] = (await answered) as [FloodAnswers]
    const after = await askFor(client, seconds / 2)
    console.log(
      `Flood ${number + 1}: memory of the server with its process for passwords ${idle.toFixed(0)} MiB before, ${memory.toFixed(0)} MiB at most; guesses, by answer: ${JSON.stringify(answers)}`,
    )
    for (const [who, entries] of [
      ['who signed in from there before', waits.slice(0, known.length)],
      ['who did not', waits.slice(known.length)],
    ] as const) {
      const [times, refusals] = [entries.map(({ ms }) => ms), entries.map(entry => entry.refusals)]
      console.log(
        `  good users, ${times.length} ${who}: in after ${quantile(times, 0.5).toFixed(0)} ms, at most ${quantile(times, 1).toFixed(0)} ms (aim 2000), told to come again ${refusals.reduce((sum, count) => sum + count, 0)} times, one of them ${Math.max(...refusals)}`,
      )
    }
    for (const [when, times] of Object.entries({ before, during, after })) console.log(line(when, times))
    return quantile(during, 0.99) / quantile([...before, ...after], 0.99)
  } finally {
    flood.kill()
  }
}

/** The ratio of two p99 of one flood says little: of several floods it is their median. */
const siege = async (perSecond: number, seconds: number, rounds: number): Promise<void> => {
  const place = await processPlace({ SERVICE_LOG_LEVEL: 'info', SERVICE_TRUSTED_PROXIES: '127.0.0.0/8' })
  const server = await startApiProcess(place)
  try {
    const client = await someone(place, server)
    const ratios: number[] = []
    for (let number = 0; number < rounds; number++)
      ratios.push(await round({ place, server, client }, { number, perSecond, seconds }))
    console.log(
      `${perSecond} guesses a second from ${ADDRESSES} addresses for ${seconds} s, p99 of GETs meanwhile to p99 without: ${ratios.map(ratio => ratio.toFixed(2)).join(', ')}; median ${quantile(ratios, 0.5).toFixed(2)} (aim < 2)`,
    )
  } finally {
    await server.stop()
    await place.plane.database.stop()
    await stopTestCluster()
  }
}

if (process.argv[2] === '--flood')
  process.once('message', (flood: Flood) => {
    void floodSignIns(flood).then(answers => process.send?.(answers))
  })
else await siege(Number(process.argv[2] ?? 200), Number(process.argv[3] ?? 60), Number(process.argv[4] ?? 3))
