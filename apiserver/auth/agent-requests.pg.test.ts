import assert from 'node:assert/strict'
import pg from 'pg'
import { Registry } from 'prom-client'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { silentLog } from '../../runtime/log/log.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { makeUser } from '../commands/make-user.ts'
import { listTokenEvents } from '../store/token-events.ts'
import { AgentRequests } from './agent-requests.ts'

describe('requests of agents’ tokens that wait to be written', () => {
  let plane: ControlPlaneDatabase
  let intruder: pg.Client
  let tokenId: string
  before(async () => {
    plane = await controlPlaneDatabase()
    intruder = new pg.Client({ connectionString: plane.url('postgres') })
    await intruder.connect()
    const user = { email: undefined, name: 'Ada', isOperator: false, tokenName: 'agent' }
    tokenId = (await makeUser(plane.database, user)).tokenId
  })
  after(async () => {
    await intruder.end()
    await plane.database.stop()
  })

  const requests = (registry: Registry) => new AgentRequests(plane.database, silentLog, registry)
  const record = (to: AgentRequests, n: number, id = tokenId) =>
    to.record({ tokenId: id, method: 'GET', path: `/v1/organizations/o${n}`, status: 200, clientIp: '::1' })
  const dropped = async (registry: Registry): Promise<number | undefined> =>
    (await registry.getSingleMetric('svc_token_events_dropped_total')?.get())?.values[0]?.value
  const isWaiting = async (): Promise<boolean> =>
    (await intruder.query(`select 1 from pg_locks where relation = 'token_events'::regclass and not granted`))
      .rowCount !== 0

  it('are 10,000 at most while the database is slow: the oldest are dropped and counted, the newest written', async () => {
    const registry = new Registry()
    const agents = requests(registry)
    await intruder.query('begin')
    await intruder.query('lock table token_events in access exclusive mode')
    record(agents, 0)
    void agents.flush()
    while (!(await isWaiting()));
    for (let n = 1; n <= 10_700; n++) record(agents, n)
    // 500 when the 10,001st came, and 500 more when there were 10,000 again.
    assert.equal(await dropped(registry), 1000)
    await intruder.query('commit')
    await agents.flush()
    const { items } = await listTokenEvents(plane.database, tokenId, { limit: 200 })
    assert.deepEqual([items.length, items[0]?.path], [200, '/v1/organizations/o10700'])
    assert.equal(await dropped(registry), 1000)
  })

  it('are counted as dropped when they cannot be written', async () => {
    const registry = new Registry()
    const agents = requests(registry)
    await intruder.query('revoke insert on token_events from svc_api')
    for (let n = 0; n < 3; n++) record(agents, n, newId('tok'))
    await agents.flush()
    await intruder.query('grant insert on token_events to svc_api')
    assert.equal(await dropped(registry), 3)
  })
})
