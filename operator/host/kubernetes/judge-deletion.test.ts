import assert from 'node:assert/strict'
import { isClaimGoing, isNodeSuspect } from './judge-deletion.ts'
import type { Claim, Pod } from './object-types.ts'

const NOW = Date.parse('2030-01-01T00:01:00Z')
// As it is on the wire.
const at = (text: string): Date => text as unknown as Date
const PROTECTION = 'kubernetes.io/pvc-protection'

describe('a claim that is going', () => {
  const claim = (deleted: string | undefined, finalizers: string[] = [PROTECTION]): Claim => ({
    metadata: { name: 'main', finalizers, ...(deleted === undefined ? {} : { deletionTimestamp: at(deleted) }) },
  })
  const rows: readonly (readonly [why: string, claim: Claim | undefined, going: boolean])[] = [
    ['deleted a moment ago', claim('2030-01-01T00:00:51Z'), true],
    ['held by nothing at all', claim('2030-01-01T00:00:51Z', []), true],
    ['its protection should have let it go by now', claim('2030-01-01T00:00:49Z'), false],
    ['somebody holds it', claim('2030-01-01T00:00:59Z', [PROTECTION, 'somebody/else']), false],
    ['nobody deleted it', claim(undefined), false],
    ['it is not there', undefined, false],
  ]
  for (const [why, given, going] of rows)
    it(`${going ? 'is waited for' : 'is looked at'}: ${why}`, () => assert.equal(isClaimGoing(given, NOW), going))
})

describe('the node of a pod that was deleted', () => {
  const pod = (phase: string, ready: string, deleted: string): Pod => ({
    metadata: { deletionTimestamp: at(deleted) },
    spec: { nodeName: 'one' },
    status: { phase, conditions: [{ type: 'Ready', status: ready }] },
  })
  const rows: readonly (readonly [why: string, pod: Pod, suspect: boolean])[] = [
    ['its pod still runs', pod('Running', 'True', '2030-01-01T00:01:10Z'), false],
    ['somebody says that its pod is not ready', pod('Running', 'False', '2030-01-01T00:01:10Z'), true],
    ['it has just said that the pod ended', pod('Succeeded', 'False', '2030-01-01T00:01:10Z'), false],
    ['it said that the pod ended, and lets it stay', pod('Succeeded', 'False', '2030-01-01T00:00:49Z'), true],
    ['its pod has not ended in its time', pod('Running', 'True', '2030-01-01T00:00:49Z'), true],
  ]
  for (const [why, given, suspect] of rows)
    it(`is ${suspect ? '' : 'not '}asked for: ${why}`, () => assert.equal(isNodeSuspect(given, NOW), suspect))
})
