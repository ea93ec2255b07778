import assert from 'node:assert/strict'
import { silentLog } from '../../runtime/log/log.ts'
import { StoreError } from '../../runtime/store/store-error.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { eventually } from '../../testkit/dispatch-world.ts'
import { insertOrganization } from '../store/organizations.ts'
import { deleteProject, insertProject, lockProject } from '../store/projects.ts'
import type { Sql } from '../store/sql.ts'
import { startNamespaceRemover } from './namespace-remover.ts'
import type { NamespaceRemoval, ProjectNamespaces } from './project-namespaces.ts'

const project = (projectId: string) => ({
  ...{ organizationId: 'acme', projectId, namespace: `svc-acme-${projectId}` },
  ...{ region: 'local', postgresMajor: 17, protectProduction: false },
})

describe('the remover of project namespaces', () => {
  let plane: ControlPlaneDatabase
  const asked: string[] = []
  let answer: () => Promise<NamespaceRemoval>
  const namespaces: ProjectNamespaces = {
    ensure: () => assert.fail('nothing is made here'),
    doubt: () => undefined,
    remove: ({ namespace }) => {
      asked.push(namespace)
      return answer()
    },
  }
  let stop: (() => Promise<void>) | undefined
  const start = (): void => {
    const fenced = <T>(work: (sql: Sql) => Promise<T>): Promise<T> => plane.database.transaction(work)
    stop = startNamespaceRemover({ namespaces, fenced, leads: () => true, log: silentLog, everyMs: 20 })
  }
  const remove = (projectId: string): Promise<void> =>
    plane.database.transaction(async sql => {
      await lockProject(sql, 'acme', projectId)
      await deleteProject(sql, 'acme', projectId)
    })
  const wishes = () => plane.database.rows(`select from projects where remove_namespace`)

  beforeEach(async () => {
    plane = await controlPlaneDatabase()
    asked.length = 0
    answer = async () => 'removed'
    await insertOrganization(plane.database, 'acme', 'acme')
    for (const id of ['stays', 'goes', 'too']) await insertProject(plane.database, project(id))
  })
  afterEach(async () => {
    await stop?.()
    await plane.database.stop()
  })

  it('removes those of deleted projects, each once, and of no other', async () => {
    await remove('goes')
    start()
    await remove('too')
    await eventually(wishes, rows => rows.length === 0, 'no wish is left')
    assert.deepEqual(asked, ['svc-acme-goes', 'svc-acme-too'])
  })

  it('tries again what failed, and forgets what stays for a reason', async () => {
    let failures = 2
    answer = async () => {
      if (failures-- > 0) throw new Error('away')
      return { kept: 'data' }
    }
    await remove('goes')
    start()
    await eventually(wishes, rows => rows.length === 0, 'no wish is left')
    assert.equal(asked.length, 3)
  })

  it('removes all the others while one cannot be removed', async () => {
    for (const id of ['goes', 'too']) await remove(id)
    answer = async () => {
      if (asked.at(-1) === 'svc-acme-goes') throw new StoreError('Forbidden', 'Cannot list claims')
      return 'removed'
    }
    start()
    await eventually(wishes, rows => rows.length === 1, 'only the wish of the one is left')
    assert.ok(asked.includes('svc-acme-too'))
    const tried = asked.length
    await eventually(
      async () => asked.length,
      count => count > tried,
      'the one is tried again',
    )
    answer = async () => 'removed'
    await eventually(wishes, rows => rows.length === 0, 'no wish is left')
  })

  it('lets go of the namespace of a project that was put again, and has who puts it wait while one goes', async () => {
    await remove('goes')
    await insertProject(plane.database, project('goes'))
    assert.deepEqual(await wishes(), [])
    await remove('too')
    const { promise: going, resolve: gone } = Promise.withResolvers<NamespaceRemoval>()
    answer = () => going
    start()
    await eventually(
      async () => asked.length,
      count => count === 1,
      'it is being removed',
    )
    let put = false
    const putting = insertProject(plane.database, project('too')).then(() => (put = true))
    await new Promise(resolve => setTimeout(resolve, 100))
    assert.equal(put, false)
    gone('removed')
    await putting
    assert.deepEqual([asked, await wishes()], [['svc-acme-too'], []])
  })
})
