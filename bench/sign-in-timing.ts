/**
 * Whether the time of a refused sign-in tells which accounts there are: attempts on accounts in five states, in turns and each
 * on an account of its own, against an API server process. For each two states the AUC: the chance that one of the first took
 * longer than one of the second, where 0.5 tells nothing. Run: node bench/sign-in-timing.ts [attempts a state]
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { type ApiProcess, type ProcessPlace, processPlace, startApiProcess } from '../testkit/api-process.ts'
import { stopTestCluster } from '../testkit/postgres.ts'
import { passwordAccounts, TEST_PASSWORD } from '../testkit/sign-in.ts'
import { quantile } from './figure.ts'

const STATES = ['none', 'wrong password', 'locked', 'disabled', 'without a password'] as const
type State = (typeof STATES)[number]
type Samples = Record<State, number[]>

const addressOf = (): string => `10.${randomBytes(3).join('.')}`

/** As many accounts in each state as there are attempts; the answer holds their addresses. */
const seed = async ({ plane }: ProcessPlace, count: number): Promise<Record<State, string[]>> => {
  const some = (): Promise<string[]> => passwordAccounts(plane, count)
  const accounts = {
    none: Array.from({ length: count }, () => `${randomUUID()}@example.com`),
    'wrong password': await some(),
    locked: await some(),
    disabled: await some(),
    'without a password': await some(),
  }
  const change = (statement: string, state: State) => plane.database.rows(statement, [accounts[state]])
  await change('update users set disabled_at = now() where email = any($1)', 'disabled')
  await change(
    'delete from passwords p using users u where u.user_id = p.user_id and u.email = any($1)',
    'without a password',
  )
  await change(
    `insert into sign_in_failures (account_key, failed, locked_at, locked_until, expires_at)
     select sha256(e::bytea), array_fill(now() - interval '1 s', array[10]), now() - interval '1 s', now() + interval '1 day', now() + interval '1 day'
     from unnest($1::text[]) e`,
    'locked',
  )
  return accounts
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** How long the answer took to arrive whole, in milliseconds. */
const attempt = (url: string, email: string, password: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ email, password })
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      'X-Forwarded-For': addressOf(),
    }
    const began = performance.now()
    const outgoing = request(`${url}/v1/auth/builtin/sign-in`, { agent, method: 'POST', headers }, response => {
      response.resume().once('end', () => {
        if (response.statusCode === 401) resolve(performance.now() - began)
        else reject(new Error(`A sign-in was answered ${response.statusCode}`))
      })
    })
    outgoing.once('error', reject)
    outgoing.end(body)
  })

const shuffled = <T>(values: readonly T[]): T[] => {
  const drawn = values.map(value => [Math.random(), value] as const)
  return drawn.sort(([a], [b]) => a - b).map(([, value]) => value)
}

/** The chance that a value of `a` is above one of `b`; equal ones count half. */
const aucOf = (a: readonly number[], b: readonly number[]): number => {
  const sorted = b.toSorted((x, y) => x - y)
  const below = (value: number, orEqual: boolean): number => {
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const at = sorted[middle] ?? 0
      if (at < value || (orEqual && at === value)) low = middle + 1
      else high = middle
    }
    return low
  }
  const wins = a.reduce((sum, value) => sum + (below(value, false) + below(value, true)) / 2, 0)
  return wins / (a.length * b.length)
}

/** Half of the 95 % band of an AUC where both are the same distribution. */
const bandOf = (n: number): number => 1.96 * Math.sqrt((2 * n + 1) / (12 * n * n))

const report = (samples: Samples): void => {
  const n = samples.none.length
  for (const state of STATES) {
    const [p50, p90] = [quantile(samples[state], 0.5), quantile(samples[state], 0.9)]
    console.log(`${state.padEnd(20)} median ${p50.toFixed(2)} ms, p90 ${p90.toFixed(2)} ms`)
  }
  let worst = 0.5
  for (const [at, one] of STATES.entries())
    for (const other of STATES.slice(at + 1)) {
      const auc = aucOf(samples[one], samples[other])
      if (Math.abs(auc - 0.5) > Math.abs(worst - 0.5)) worst = auc
      console.log(`${one} / ${other}: AUC ${auc.toFixed(3)} ± ${bandOf(n).toFixed(3)}`)
    }
  console.log(
    `Sign-in timing, ${n} attempts a state: the AUC farthest from 0.5 is ${worst.toFixed(3)} (aim 0.47 to 0.53)`,
  )
}

const measure = async (server: ApiProcess, place: ProcessPlace, count: number): Promise<Samples> => {
  const samples = Object.fromEntries(STATES.map(state => [state, []])) as unknown as Samples
  const accounts = await seed(place, count)
  for (let warm = 0; warm < 20; warm++) await attempt(server.url, 'warm@example.com', TEST_PASSWORD)
  for (let at = 0; at < count; at++)
    for (const state of shuffled(STATES)) {
      const password = state === 'wrong password' ? 'wrong horse battery staple' : TEST_PASSWORD
      samples[state].push(await attempt(server.url, accounts[state][at] ?? '', password))
    }
  return samples
}

const count = Number(process.argv[2] ?? 2000)
const place = await processPlace({
  SERVICE_LOG_LEVEL: 'info',
  SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
  SERVICE_LOGIN_MAX_FAILURES: '1000',
})
const server = await startApiProcess(place)
try {
  report(await measure(server, place, count))
} finally {
  agent.destroy()
  await server.stop()
  await place.plane.database.stop()
  await stopTestCluster()
}
