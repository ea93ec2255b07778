/** A changed audit log is told: to whoever may read it, through HTTP, and to whoever runs the program beside the server. */
import assert from 'node:assert/strict'
import pg from 'pg'
import { ApiClient } from '../../testkit/api-client.ts'
import { startTestApiServer, type TestApiServer } from '../../testkit/api-server.ts'
import { type ApiTeam, makeTeam } from '../../testkit/api-team.ts'
import { freePorts } from '../../testkit/free-port.ts'
import { type Ended, ended } from '../../testkit/kubernetes/kubectl.ts'

const PROGRAM = new URL('../verify-audit.ts', import.meta.url).pathname

/** What somebody does who may do anything to the database, to the third of six events. */
const TAMPERS = {
  changed: {
    sql: [`update audit_events set actor = 'user:nobody' where organization_id = $1 and id = 3`],
    broken: { id: 3, problem: 'changed' },
  },
  deleted: {
    sql: ['delete from audit_events where organization_id = $1 and id = 3'],
    broken: { id: 3, problem: 'missing' },
  },
  'cut-off': {
    sql: ['delete from audit_events where organization_id = $1 and id = 6'],
    broken: { id: 6, problem: 'missing' },
  },
  reordered: {
    sql: [
      'update audit_events set id = -id where organization_id = $1 and id in (3, 4)',
      'update audit_events set id = 7 + id where organization_id = $1 and id < 0',
    ],
    broken: { id: 3, problem: 'changed' },
  },
} as const
const EVENTS = 6

describe('an audit log that somebody changed', () => {
  let api: TestApiServer
  let team: ApiTeam
  let intruder: pg.Client
  before(async () => {
    api = await startTestApiServer({ operator: false })
    team = await makeTeam(api)
    intruder = new pg.Client({ connectionString: api.plane.url('postgres') })
    await intruder.connect()
    for (const org of ['untouched', ...Object.keys(TAMPERS)]) {
      assert.equal((await team.owner.call('putOrganization', { params: { org }, body: { name: org } })).status, 200)
      for (let n = 2; n <= EVENTS; n++) {
        const body = { region: 'local', postgres_major: 17 }
        const answer = await team.owner.call('putProject', { params: { org, project: `p${n}` }, body })
        assert.equal(answer.status, 200, answer.text)
      }
    }
  })
  after(async () => {
    await intruder.end()
    await api.stop()
  })

  const verdict = async (org: string) => {
    const { status, text, body } = await team.owner.call('verifyAuditEvents', { params: { org } })
    assert.equal(status, 200, text)
    return { verified: body.verified, events: body.events, broken: body.broken }
  }
  /** The program, as an administrator runs it. */
  const verify = (): Promise<Ended> =>
    ended('env', [...['-i', `SERVICE_DATABASE_URL=${api.plane.url('svc_api')}`], ...[process.execPath, PROGRAM]])
  /** By the name of its chain. */
  const linesOf = ({ stdout }: Ended): Readonly<Record<string, string | undefined>> => {
    const named = stdout
      .trimEnd()
      .split('\n')
      .map((line): [string, string] => [/^\w+ +([\w-]+):/.exec(line)?.[1] ?? '', line])
    return Object.fromEntries(named)
  }
  const tamper = async (sql: readonly string[], values: readonly unknown[] = []): Promise<void> => {
    await intruder.query('begin')
    for (const how of ['disable', 'enable always']) {
      for (const table of ['audit_events', 'account_events'])
        await intruder.query(`alter table ${table} ${how} trigger ${table}_append_only`)
      if (how === 'disable')
        for (const text of sql) assert.notEqual((await intruder.query(text, [...values])).rowCount, 0, text)
    }
    await intruder.query('commit')
  }

  it('verifies before: the program ends with 0 and says the head of every chain', async () => {
    for (const org of Object.keys(TAMPERS))
      assert.deepEqual(await verdict(org), { verified: true, events: EVENTS, broken: null })
    const run = await verify()
    assert.equal(run.code, 0, run.stdout + run.stderr)
    const lines = linesOf(run)
    for (const org of ['untouched', 'accounts', ...Object.keys(TAMPERS)])
      assert.match(lines[org] ?? '', /^ok {4}[\w-]+: \d+ events, head \d+ [0-9a-f]{64}$/)
    const { head } = (await team.owner.call('verifyAuditEvents', { params: { org: 'untouched' } })).body
    assert.equal(lines['untouched'], `ok    untouched: ${EVENTS} events, head ${head?.id} ${head?.hash}`)
  })

  it('is named through HTTP by its first event that is not as it was written, on every replica', async () => {
    const replica = new ApiClient(await api.startReplica(), team.owner.token)
    for (const [org, { sql, broken }] of Object.entries(TAMPERS)) {
      await tamper(sql, [org])
      const expected = { verified: false, events: broken.id - 1, broken }
      assert.deepEqual(await verdict(org), expected, org)
      const { body } = await replica.call('verifyAuditEvents', { params: { org } })
      assert.deepEqual({ verified: body.verified, events: body.events, broken: body.broken }, expected, org)
    }
    assert.deepEqual(await verdict('untouched'), { verified: true, events: EVENTS, broken: null })
  })

  it('is named by the program, which ends with 1: each chain in a line, that of accounts too', async () => {
    const healthy = await verify()
    assert.match(linesOf(healthy)['accounts'] ?? '', /^ok /)
    await tamper([`update account_events set client_ip = '203.0.113.66' where id = 2`])
    const run = await verify()
    assert.deepEqual([healthy.code, run.code], [1, 1])
    const lines = linesOf(run)
    const bad = ({ id, problem }: { readonly id: number; readonly problem: string }, name: string): string =>
      `BAD   ${name}: event ${id} is ${problem}; the ${id - 1} before it are as they were written`
    for (const [org, { broken }] of Object.entries(TAMPERS)) assert.equal(lines[org], bad(broken, org))
    assert.equal(lines['accounts'], bad({ id: 2, problem: 'changed' }, 'accounts'))
    assert.match(lines['untouched'] ?? '', /^ok /)
  })

  it('is no verdict where no database answers: the program ends with 1 and says no chain', async () => {
    const nowhere = `postgres://svc_api@127.0.0.1:${await freePorts()}/svc`
    const run = await ended('env', ['-i', `SERVICE_DATABASE_URL=${nowhere}`, process.execPath, PROGRAM])
    assert.deepEqual([run.code, run.stdout], [1, ''])
    assert.match(run.stderr, /ECONNREFUSED/)
  })
})
