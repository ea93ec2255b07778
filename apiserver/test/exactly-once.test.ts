import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiAnswer } from '../../testkit/api-answers.ts'
import { ApiClient } from '../../testkit/api-client.ts'
import { type ApiProcess, type ProcessPlace, processPlace, startApiProcess } from '../../testkit/api-process.ts'
import { ORG } from '../../testkit/api-team.ts'
import { type CuttingProxy, startCuttingProxy } from '../../testkit/cutting-proxy.ts'
import { sized } from '../../testkit/full.ts'
import { type LossyLink, lossyLink } from '../../testkit/lossy-link.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { makeUser } from '../commands/make-user.ts'
import type { AuditEventRecord } from '../contract/audit-events.ts'

const MUTATIONS = sized(100, 2000)
const AT_ONCE = 12
/** A process is killed each time that so many mutations are done; they wait for that. */
const KILL_EVERY = sized(40, 160)
/** The answer to a commit is lost, on the way from the database, as often. */
const LOSE_EVERY = 15
/** About two requests with their answers. */
const MOST_BYTES = 6000
/** Audit events in one answer, which has to get through now and then. */
const PAGE = 5

/** A process, with a way to it and a way from it to its database, neither of which can be relied on. */
interface Replica {
  readonly process: ApiProcess
  readonly proxy: CuttingProxy
  readonly link: LossyLink
}

type Kind = 'token' | 'key' | 'project' | 'environment'
/** As many of each as there is room for. */
const kindOf = (n: number): Kind =>
  n % 5 === 0 ? 'token' : n % 20 === 1 ? 'key' : n % 5 === 2 ? 'project' : 'environment'
/** Every other token is bound to the organization, whose log tells of it; of the rest the log of sign-ins does. */
const isBound = (n: number): boolean => n % 2 === 0
const ACTIONS = {
  token: 'create_token',
  key: 'create_api_key',
  project: 'put_project',
  environment: 'create_environment',
} as const
const nameOf = (n: number): string => `once-${n}`

const send = (client: ApiClient, n: number): Promise<ApiAnswer> => {
  const [key, name] = [`key-of-${n}`, nameOf(n)]
  switch (kindOf(n)) {
    case 'token':
      return client.call('createToken', {
        key,
        body: { name, scopes: ['read'], ...(isBound(n) && { organization_id: ORG }) },
      })
    case 'key':
      return client.call('createApiKey', { key, params: { org: ORG }, body: { name, scopes: ['read'] } })
    case 'project': {
      const body = { region: 'local', postgres_major: 17 }
      return client.call('putProject', { key, params: { org: ORG, project: name }, body })
    }
    case 'environment': {
      const body = { organization_id: ORG, project_id: 'shop', environment_id: name, kind: 'staging' }
      return client.call('createEnvironment', { key, body })
    }
  }
}

const ok = (): boolean => true

/** What fetch throws when a connection ends before its answer does. */
const isBroken = (error: unknown): boolean => error instanceof TypeError

describe('mutations with retries, while connections are cut and servers killed', function () {
  this.timeout(900_000)
  let place: ProcessPlace
  let replicas: readonly [Replica, Replica]
  let clients: readonly [ApiClient, ApiClient]
  let direct: ApiClient
  let done = 0
  let isOver = false
  let kills = 0
  let replays = 0
  const answers = new Map<number, Set<string>>()

  before(async () => {
    place = await processPlace()
    const { token } = await makeUser(place.plane.database, {
      email: 'ada@example.com',
      name: 'Ada',
      isOperator: true,
      tokenName: 'first',
    })
    const start = async (): Promise<Replica> => {
      const link = await lossyLink((await testCluster()).socketFolder)
      const process = await startApiProcess(place, {
        SERVICE_DATABASE_URL: `postgres://svc_api@127.0.0.1:${link.port}/${place.plane.name}`,
      })
      return { link, process, proxy: await startCuttingProxy(process.url, MOST_BYTES) }
    }
    replicas = [await start(), await start()]
    clients = [new ApiClient(replicas[0].proxy.url, token), new ApiClient(replicas[1].proxy.url, token)]
    direct = new ApiClient(replicas[0].process.url, token)
    assert.equal((await direct.call('putOrganization', { params: { org: ORG }, body: { name: 'Acme' } })).status, 200)
    const project = { params: { org: ORG, project: 'shop' }, body: { region: 'local', postgres_major: 17 } }
    assert.equal((await direct.call('putProject', project)).status, 200)
  })
  after(async () => {
    for (const { proxy, process, link } of replicas) {
      proxy.stop()
      await process.stop()
      link.stop()
    }
    await place.plane.database.stop()
  })

  const anyClient = (): ApiClient => (Math.random() < 0.5 ? clients[0] : clients[1])

  /** Asks again until there is an answer that says how it ended. */
  const persist = async (ask: () => Promise<ApiAnswer>): Promise<ApiAnswer> => {
    for (;;) {
      try {
        const answer = await ask()
        const { code } = (answer.body ?? {}) as { code?: string }
        if (answer.status !== 503 && code !== 'idempotency_in_progress') return answer
      } catch (error) {
        if (!isBroken(error) || isOver) throw error
      }
      await sleep(Math.random() * 60)
    }
  }

  /** As impatient clients do it: sometimes twice at once, sometimes again after the answer. */
  const mutate = async (n: number): Promise<void> => {
    const once = async (): Promise<void> => {
      const answer = await persist(() => send(anyClient(), n))
      assert.ok(answer.status < 300, `${nameOf(n)}: ${answer.status} ${answer.text}`)
      if (answer.headers.has('idempotency-replayed')) replays++
      answers.set(n, (answers.get(n) ?? new Set()).add(answer.text))
    }
    await Promise.all(Math.random() < 0.3 ? [once(), once()] : [once()])
    if (Math.random() < 0.3) await once()
    done++
  }

  /** Waits until so many mutations are done; false: that will not be. */
  const reached = async (count: number): Promise<boolean> => {
    while (done < count && !isOver) await sleep(5)
    return !isOver
  }
  const torment = async (): Promise<void> => {
    for (let next = KILL_EVERY; next < MUTATIONS; next += KILL_EVERY) {
      if (!(await reached(next))) return
      await sleep(Math.random() * 30)
      const { process } = replicas[Math.random() < 0.5 ? 0 : 1]
      await process.kill()
      kills++
      // As a service manager does: one whose commit is lost while it starts ends, and is started again.
      while (!(await process.start().then(ok, () => false))) await sleep(50)
    }
  }
  const loseCommits = async (): Promise<void> => {
    for (let next = LOSE_EVERY; next < MUTATIONS; next += LOSE_EVERY) {
      if (!(await reached(next))) return
      replicas[Math.random() < 0.5 ? 0 : 1].link.loseNextCommit()
    }
  }

  /** Reads the audit log from its begin to its end, as it grows; sees each number once and in order. */
  const follow = async (): Promise<readonly AuditEventRecord[]> => {
    const seen: AuditEventRecord[] = []
    for (;;) {
      const isLast = done === MUTATIONS
      const answer = await persist(() =>
        anyClient().call('listAuditEvents', { params: { org: ORG }, query: { after: seen.length, limit: PAGE } }),
      )
      assert.equal(answer.status, 200, answer.text)
      const { events, next_cursor: next } = answer.body as { events: AuditEventRecord[]; next_cursor: number | null }
      for (const event of events) {
        assert.equal(event.id, seen.length + 1, 'the follower missed an event, or saw one twice')
        seen.push(event)
      }
      if (next === null && isLast) return seen
      if (next === null) await sleep(10)
    }
  }

  let followed: readonly AuditEventRecord[]
  it('are all answered in the end, and every repetition like the first', async () => {
    const numbers = Array.from({ length: MUTATIONS }, (_, n) => n)
    const work = async (): Promise<void> => {
      for (let n = numbers.shift(); n !== undefined; n = numbers.shift()) {
        while (kills < Math.floor(n / KILL_EVERY) - 1 && !isOver) await sleep(5)
        await mutate(n)
      }
    }
    const following = follow()
    const all = [following, torment(), loseCommits(), ...Array.from({ length: AT_ONCE }, work)]
    try {
      await Promise.all(all)
    } finally {
      isOver = true
      await Promise.allSettled(all)
    }
    followed = await following
    assert.equal(answers.size, MUTATIONS)
    assert.deepEqual(
      [...answers].filter(([, texts]) => texts.size > 1),
      [],
    )
  })

  it('met the faults that they are to survive', () => {
    const cut = replicas.reduce((sum, { proxy }) => sum + proxy.cut, 0)
    const lost = replicas.reduce((sum, { link }) => sum + link.lost, 0)
    assert.ok(kills >= MUTATIONS / KILL_EVERY - 1, `${kills} kills`)
    assert.ok(cut >= MUTATIONS / 2, `${cut} connections cut`)
    assert.ok(lost >= 1, `${lost} answers to commits lost`)
    // More than whoever asks twice on purpose makes.
    assert.ok(replays >= MUTATIONS / 2, `${replays} replays`)
  })

  it('made one thing each', async () => {
    const made = await place.plane.database.rows<{ kind: Kind; name: string }>(
      `select 'token' as kind, name from tokens where name like 'once-%'
       union all select 'key', name from api_keys
       union all select 'project', project_id from projects where project_id like 'once-%'
       union all select 'environment', environment_id from environments
       union all select 'environment', environment_id from operations
       union all select 'environment', e.environment_id from intents i join environments e on e.id = i.environment_row`,
    )
    const expected = Array.from({ length: MUTATIONS }, (_, n) => n).flatMap(n => {
      const line = `${kindOf(n)} ${nameOf(n)}`
      // Its row, its operation, its intent.
      return kindOf(n) === 'environment' ? [line, line, line] : [line]
    })
    assert.deepEqual(made.map(({ kind, name }) => `${kind} ${name}`).sort(), expected.sort())
  })

  it('left one audit event each, and whoever followed the log meanwhile has them all', async () => {
    const bodies = [...answers].map(([n, [text = '']]) => ({ n, body: JSON.parse(text) as Record<string, string> }))
    const inLoginLog = (n: number): boolean => kindOf(n) === 'token' && !isBound(n)
    const expected = bodies.flatMap(({ n, body }) => {
      const kind = kindOf(n)
      if (inLoginLog(n)) return []
      const id = { token: body['id'], key: body['api_key_id'], project: nameOf(n), environment: `shop/${nameOf(n)}` }[
        kind
      ]
      return `${ACTIONS[kind]} ${id}`
    })
    const given = followed.map(({ action, resource_id }) => `${action} ${resource_id}`)
    assert.deepEqual(given.toSorted(), [...expected, `put_organization ${ORG}`, 'put_project shop'].sort())
    const others = await place.plane.database.rows<{ id: string }>(
      `select metadata ->> 'token_id' as id from account_events where type = 'create_token'`,
    )
    assert.deepEqual(
      others.map(({ id }) => id).sort(),
      bodies.flatMap(({ n, body }) => (inLoginLog(n) ? body['id'] : [])).sort(),
    )
    const kept = await place.plane.database.rows<{ id: number }>(
      'select id from audit_events where organization_id = $1 order by id',
      [ORG],
    )
    assert.deepEqual(
      followed.map(({ id }) => id),
      kept.map(({ id }) => id),
    )
    const verdict = await direct.call('verifyAuditEvents', { params: { org: ORG } })
    assert.equal(verdict.body.verified, true, verdict.text)
  })
})
