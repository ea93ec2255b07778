import assert from 'node:assert/strict'
import type { Resource, ResourceType } from '../lib/model/resource.ts'
import { caseObject, RULE_CASES } from '../testkit/rule-cases.ts'
import { deletionRecordType } from './deletion-record-type.ts'
import { environmentType } from './environment-type.ts'
import { DELETION_RECORD_RULES, ENVIRONMENT_RULES } from './rules.ts'

const TYPES = { Environment: environmentType, DeletionRecord: deletionRecordType } as unknown as Record<
  'Environment' | 'DeletionRecord',
  ResourceType
>

/** As a store hands it to `validate`: pruned before. */
const manifest = (type: ResourceType, { name, spec }: { name: string; spec: unknown }): Resource =>
  ({ apiVersion: type.apiVersion, metadata: { name, namespace: 'n' }, spec: type.prune(spec) }) as Resource

describe('the rules of the kinds', () => {
  for (const { why, kind, old, next, refused } of RULE_CASES) {
    const verb = refused === undefined ? 'admit' : 'refuse'
    it(`${verb}: ${why} (${kind}, ${old === undefined ? 'created' : 'updated'})`, () => {
      const type = TYPES[kind]
      const before = old === undefined ? undefined : manifest(type, caseObject(kind, old))
      const violations = type.validate(manifest(type, caseObject(kind, next)), before)
      if (refused === undefined) assert.deepEqual(violations, [])
      else if (refused.rule === undefined)
        assert.deepEqual(new Set(violations.map(({ field }) => field)), new Set([refused.field]))
      else
        assert.ok(
          violations.some(({ field, message }) => field === refused.field && message === refused.rule),
          JSON.stringify(violations),
        )
    })
  }

  it('are each refused by a case, and each of those cases starts from an object that is admitted', () => {
    for (const { message } of [...ENVIRONMENT_RULES, ...DELETION_RECORD_RULES])
      assert.ok(
        RULE_CASES.some(({ refused }) => refused?.rule === message),
        `no case breaks "${message}"`,
      )
    for (const { why, kind, old } of RULE_CASES)
      if (old !== undefined)
        assert.deepEqual(TYPES[kind].validate(manifest(TYPES[kind], caseObject(kind, old)), undefined), [], why)
  })

  it('have names and messages of their own, and name a field', () => {
    for (const rules of [ENVIRONMENT_RULES, DELETION_RECORD_RULES]) {
      assert.equal(new Set(rules.map(({ name }) => name)).size, rules.length)
      assert.equal(new Set(rules.map(({ message }) => message)).size, rules.length)
    }
  })
})
