import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../testkit/full.ts'
import { caseObject } from '../testkit/rule-cases.ts'
import type { Environment } from './environment.ts'
import { environmentKind, environmentType } from './environment-type.ts'

const environment = (spec: Readonly<Record<string, unknown>> = {}, status?: unknown): Environment =>
  ({ metadata: { name: 'acme.shop.main' }, spec: caseObject('Environment', { spec }).spec, status }) as never

const condition = (type: string, status = 'True'): object => ({
  type,
  status,
  reason: 'Because',
  message: 'so',
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
})

describe('environmentType.prune', () => {
  it('drops unknown fields at every depth and keeps known ones, wrong types included', () => {
    const pruned = environmentType.prune({
      organizationId: 'acme',
      kind: 17,
      color: 'blue',
      resources: { cpu: '2', gpu: '1' },
      request: 'soon',
    })
    assert.deepEqual(pruned, { organizationId: 'acme', kind: 17, resources: { cpu: '2' }, request: 'soon' })
  })

  it('takes no field from a prototype', () => {
    assert.deepEqual(environmentType.prune(JSON.parse('{"__proto__": {"kind": "preview"}, "constructor": 1}')), {})
  })

  it('never throws, never mutates, and a second time changes nothing', () => {
    const anything = fc.oneof(
      fc.anything(),
      fc.dictionary(fc.constantFrom('kind', 'resources', 'request', 'ttlHours', 'x'), fc.jsonValue(), {
        noNullPrototype: true,
      }),
    )
    fc.assert(
      fc.property(anything, value => {
        const before = structuredClone(value)
        const once = environmentType.prune(value)
        assert.deepEqual(value, before)
        assert.deepEqual(environmentType.prune(once), once)
      }),
      { numRuns: sized(500, 20_000) },
    )
  })
})

describe('environmentType.validate', () => {
  it('refuses what is no object at all', () => {
    for (const nothing of [undefined, null, 7, 'x', [], {}])
      assert.notDeepEqual(environmentType.validate(nothing, undefined), [])
  })

  it('refuses two conditions of one type, as a list map does', () => {
    const [violation] = environmentType.validate(
      environment({}, { conditions: [condition('Ready'), condition('Ready', 'False')] }),
      environment(),
    )
    assert.equal(violation?.field, 'status.conditions')
    assert.deepEqual(
      environmentType.validate(
        environment({}, { conditions: [condition('Ready'), condition('Stalled')] }),
        environment(),
      ),
      [],
    )
  })

  it('lets an object of former rules be changed elsewhere, but not into something new that is wrong', () => {
    // Made by an earlier release, which allowed more.
    const old = environment({ region: 'r'.repeat(100), ttlHours: 5 })
    assert.deepEqual(
      environmentType.validate(environment({ region: 'r'.repeat(100), ttlHours: 5 }, { phase: 'ready' }), old),
      [],
    )
    const renamed = environmentType.validate(environment({ region: 'q'.repeat(100), ttlHours: 5 }), old)
    assert.deepEqual(
      renamed.map(({ field }) => field),
      ['spec.region'],
    )
    const elsewhere = environmentType.validate(
      environment({ region: 'r'.repeat(100), ttlHours: 5, suspended: true }),
      old,
    )
    assert.deepEqual(
      elsewhere.map(({ field }) => field),
      ['spec.ttlHours'],
      'a rule over the spec is judged anew when the spec changes',
    )
  })
})

describe('environmentType.admitDelete', () => {
  it('refuses a protected environment with a reason and lets every other go', () => {
    assert.match(
      environmentType.admitDelete(environment({ deletionProtection: true })) ?? '',
      /"acme\.shop\.main": it is protected/,
    )
    assert.equal(environmentType.admitDelete(environment({ deletionProtection: false })), undefined)
    assert.equal(environmentType.admitDelete(environment()), undefined)
  })
})

describe('environmentKind', () => {
  it('shows only fields that its schemas know', () => {
    const shape = { spec: environmentKind.spec.shape, status: environmentKind.status?.shape }
    for (const path of [
      ...environmentKind.columns.map(({ jsonPath }) => jsonPath),
      ...environmentKind.selectableFields,
    ]) {
      const [, part, field] = /^\.(\w+)\.(\w+)/.exec(path) ?? []
      if (part !== 'metadata') assert.ok(shape[part as 'spec' | 'status']?.[field!] !== undefined, path)
    }
  })
})
