/** The same cases as rules.test.ts, judged by an API server: schema and CEL of the generated CRDs. */
import assert from 'node:assert/strict'
import type { Resource } from '../lib/model/resource.ts'
import { collectionPath, objectPath } from '../runtime/kubernetes/object-path.ts'
import { isStoreError, type StoreError } from '../runtime/store/store-error.ts'
import { apiCluster, type TestCluster } from '../testkit/kubernetes/cluster.ts'
import { type CaseObject, caseObject, RULE_CASES, type RuleCase } from '../testkit/rule-cases.ts'
import { deletionRecordType } from './deletion-record-type.ts'
import { environmentType } from './environment-type.ts'

const TYPES = { Environment: environmentType, DeletionRecord: deletionRecordType }

describe('the rules of the kinds on an API server', function () {
  this.timeout(30_000)
  let cluster: TestCluster
  let namespace: string
  before(async () => {
    cluster = await apiCluster()
    await cluster.installKinds()
    namespace = await cluster.namespace('kube')
  })

  const manifest = (kind: RuleCase['kind'], object: CaseObject, resourceVersion?: string) => {
    const { name, spec } = caseObject(kind, object)
    return { apiVersion: TYPES[kind].apiVersion, kind, metadata: { name, namespace, resourceVersion }, spec }
  }

  const create = (body: ReturnType<typeof manifest>, dryRun?: 'All'): Promise<Resource> =>
    cluster.api.call({
      method: 'POST',
      path: collectionPath(TYPES[body.kind], namespace),
      query: { dryRun },
      body,
    })

  /** What the API server would say; nothing is written but an update's old object, which goes again. */
  const judge = async ({ kind, old, next }: RuleCase): Promise<StoreError | undefined> => {
    const before = old === undefined ? undefined : await create(manifest(kind, old))
    try {
      if (before === undefined) await create(manifest(kind, next), 'All')
      else
        await cluster.api.call({
          method: 'PUT',
          path: objectPath(TYPES[kind], before.metadata),
          query: { dryRun: 'All' },
          body: manifest(kind, next, before.metadata.resourceVersion),
        })
      return undefined
    } catch (error) {
      if (isStoreError(error, 'Invalid')) return error
      throw error
    } finally {
      if (before !== undefined) await cluster.objects.delete(TYPES[kind], before.metadata, { uid: before.metadata.uid })
    }
  }

  for (const one of RULE_CASES) {
    const { why, kind, old, refused } = one
    it(`${refused === undefined ? 'admit' : 'refuse'}: ${why} (${kind}, ${old === undefined ? 'created' : 'updated'})`, async () => {
      const error = await judge(one)
      if (refused === undefined) {
        assert.equal(error, undefined)
        return
      }
      assert.ok(error, 'it was admitted')
      // A rule on the root of an object cannot name a field.
      const field = refused.rule !== undefined && refused.field === 'metadata.name' ? '' : refused.field
      const told = JSON.stringify(error.violations)
      if (refused.rule === undefined)
        assert.ok(
          error.violations.some(violation => violation.field === field),
          told,
        )
      else
        assert.ok(
          error.violations.some(
            // Where a rule cannot be evaluated, its message comes after the reason.
            violation => violation.field === field && violation.message.endsWith(refused.rule!),
          ),
          told,
        )
    })
  }
})
