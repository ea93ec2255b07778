/** What must be true when a storm is over, whatever happened in it. */
import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { environmentType } from '../../crds/environment-type.ts'
import { shortUid } from '../../crds/metadata.ts'
import { ENVIRONMENT_GONE, OVERTAKEN, SUPERSEDED } from '../../lib/model/operation.ts'
import { processesOf } from '../../runtime/postgres/postmaster-pid.ts'
import type { BoxProcess } from '../box-process.ts'
import { controlPlaneOf, type SingleBoxWorld } from '../single-box-world.ts'
import type { Tenant } from '../tenant.ts'
import type { Callers, Wish } from './wishes.ts'

const QUIET_MS = 150_000

const acknowledged = (wishes: readonly Wish[]): Wish[] =>
  wishes.filter(({ answer }) => answer !== undefined && answer.status < 300)

/** Every acknowledged operation reaches an end, and a failed one failed because of something that a caller did. */
const operationsEnded = async (tenant: Tenant, wishes: readonly Wish[]): Promise<void> => {
  for (const { verb, id, answer } of acknowledged(wishes)) {
    if (answer?.status !== 202) continue
    const end = await tenant.world.api.operation(tenant.organizationId, answer.body.id, QUIET_MS)
    if (end.state === 'failed')
      assert.ok(
        [SUPERSEDED, OVERTAKEN, ENVIRONMENT_GONE].includes(end.error ?? ''),
        `${verb} ${id} ${answer.body.id} failed: ${end.error}`,
      )
  }
}

/** Nothing is under way in the control plane's own books. */
const booksClosed = async (box: BoxProcess): Promise<void> => {
  const client = new pg.Client(controlPlaneOf(box).serving)
  await client.connect()
  try {
    for (const until = Date.now() + QUIET_MS; ; ) {
      const { rows } = await client.query<Record<string, number>>(`select
        (select count(*)::int from intents where state = 'pending') as intents,
        (select count(*)::int from operations where state in ('pending', 'running')) as operations`)
      const open = rows[0]
      if (Object.values(open ?? {}).every(count => count === 0)) return
      assert.ok(Date.now() < until, `Still open after ${QUIET_MS} ms: ${JSON.stringify(open)}`)
      await sleep(200)
    }
  } finally {
    await client.end()
  }
}

/** The API, the resource and the machine say the same of one environment. */
const agrees = async (world: SingleBoxWorld, tenant: Tenant, box: BoxProcess, id: string): Promise<void> => {
  for (const until = Date.now() + QUIET_MS; ; ) {
    const resource = await world.store.get(environmentType, tenant.key(id))
    const answer = await world.api.call<{ phase?: string }>('GET', tenant.path(id))
    const said = answer.status === 404 ? 'deleted' : answer.body.phase
    const wanted = resource === undefined ? 'deleted' : resource.spec.suspended === true ? 'suspended' : 'ready'
    if (said === wanted && (resource === undefined || resource.status?.phase === said)) {
      if (resource !== undefined) processAgrees(box, resource.metadata.uid, said === 'ready')
      return
    }
    const reality = `the resource wants ${wanted} and says ${resource?.status?.phase}`
    assert.ok(Date.now() < until, `${id} is ${said} for the API; ${reality}: ${JSON.stringify(resource?.status)}`)
    await sleep(100)
  }
}

const processAgrees = (box: BoxProcess, uid: string, runs: boolean): void => {
  const folder = box.dataFolders().environments.find(path => path.includes(shortUid(uid)))
  assert.ok(folder, `Resource ${uid} has no folder`)
  assert.equal(processesOf(folder).length > 0, runs, `${folder} runs: ${!runs}`)
}

/** Every process of a Postgres that works below a folder, one that was removed included. */
const processesBelow = (root: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const folder = readlinkSync(`/proc/${pid}/cwd`)
        return folder.startsWith(`${root}/`) ? [folder] : []
      } catch {
        return []
      }
    })

/** No folder, socket or process belongs to an environment that is not there. */
const nothingLeft = async (world: SingleBoxWorld, box: BoxProcess): Promise<void> => {
  const { items } = await world.store.list(environmentType)
  const owners = items.map(({ metadata }) => shortUid(metadata.uid))
  const strange = (name: string): boolean => !owners.some(owner => name.includes(owner))
  for (const below of ['environments', 'sockets'])
    assert.deepEqual(readdirSync(join(box.dataRoot, below)).filter(strange), [], below)
  const folders = new Set(processesBelow(box.dataRoot))
  const known = [box.dataFolders().controlPlane, ...box.dataFolders().environments]
  assert.deepEqual(
    [...folders].filter(folder => !known.includes(folder)),
    [],
    'processes',
  )
}

/** What a database acknowledged is in it. */
const rowsKept = async (world: SingleBoxWorld, tenant: Tenant, callers: Callers, id: string): Promise<void> => {
  const resource = await world.store.get(environmentType, tenant.key(id))
  if (resource === undefined) return
  if (resource.spec.suspended === true) await tenant.run('resume', id)
  const { uid } = resource.metadata
  const expected = callers.written.filter(written => written.uid === uid).map(({ value }) => value)
  const found = await tenant.sql(id, async session =>
    expected.length === 0 ? session.rows('select 1') : session.rows('select value from kept'),
  )
  if (expected.length === 0) return
  const values = new Set(found.map(row => (row as { value: string }).value))
  assert.deepEqual(
    expected.filter(value => !values.has(value)),
    [],
    `rows of ${id}`,
  )
}

/** Each acknowledged change left exactly one event, and there is no other; numbers have no gap. */
const auditComplete = async (tenant: Tenant, wishes: readonly Wish[]): Promise<void> => {
  const events = await tenant.auditEvents(200)
  assert.deepEqual(
    events.map(event => event.id),
    events.map((_, index) => index + 1),
  )
  const changes = events
    .filter(({ action }) => action.endsWith('_environment'))
    .map(({ action, resource_id, actor, metadata }) => {
      const operation = (metadata as { operation_id?: string }).operation_id
      return `${action} ${resource_id.split('/').at(-1)} ${actor.split('_')[0]} ${operation ?? ''}`
    })
  const expected = acknowledged(wishes).map(({ verb, id, answer }) => {
    const operation = answer?.status === 202 ? answer.body.id : ''
    return `${verb}_environment ${id} user:usr ${operation}`
  })
  assert.deepEqual(changes.sort(), expected.sort())
}

/** Whoever asks again with the key of then gets the answer of then. */
const replaysAgree = async (callers: Callers, wishes: readonly Wish[]): Promise<void> => {
  for (const wish of wishes) {
    const before = wish.answer
    const again = await callers.ask({ ...wish })
    assert.equal(again.status, before?.status, `${wish.verb} ${wish.id}`)
    if (before !== undefined && before.status < 300) assert.equal(again.text, before.text)
  }
}

/** The books first: what is judged after it does not change any more. */
export const judgeStorm = async (
  world: SingleBoxWorld,
  tenant: Tenant,
  box: BoxProcess,
  callers: Callers,
  ids: readonly string[],
): Promise<void> => {
  const wishes = callers.wishes.slice()
  await operationsEnded(tenant, wishes)
  await booksClosed(box)
  for (const id of ids) await agrees(world, tenant, box, id)
  await nothingLeft(world, box)
  await auditComplete(tenant, wishes)
  await replaysAgree(callers, acknowledged(wishes))
  await auditComplete(tenant, wishes)
  for (const id of ids) await rowsKept(world, tenant, callers, id)
}
