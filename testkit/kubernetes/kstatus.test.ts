import assert from 'node:assert/strict'
import { type Judged, type Kstatus, kstatusOf } from './kstatus.ts'

const on = (type: string): { type: string; status: string } => ({ type, status: 'True' })
const off = (type: string): { type: string; status: string } => ({ type, status: 'False' })
const at = (generation: number, status?: Judged['status']): Judged => ({
  metadata: { generation },
  ...(status && { status }),
})

describe('kstatus, as its documentation tells it', () => {
  const ROWS: readonly (readonly [because: string, judged: Judged, expected: Kstatus])[] = [
    ['nobody said anything', at(1), 'Current'],
    ['nobody has judged, and the schema says so', at(1, { observedGeneration: -1 }), 'InProgress'],
    ['an older spec was judged', at(2, { observedGeneration: 1, conditions: [on('Ready')] }), 'InProgress'],
    ['this spec was judged', at(2, { observedGeneration: 2, conditions: [on('Ready')] }), 'Current'],
    ['it is worked on, although it is ready', at(1, { conditions: [on('Ready'), on('Reconciling')] }), 'InProgress'],
    ['it stands still', at(1, { conditions: [off('Ready'), on('Stalled')] }), 'Failed'],
    ['it stood still once', at(1, { conditions: [on('Ready'), off('Stalled')] }), 'Current'],
    ['it is not ready', at(1, { conditions: [off('Ready')] }), 'InProgress'],
    [
      'it goes, whatever it says',
      { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' }, status: { conditions: [on('Stalled')] } },
      'Terminating',
    ],
  ]
  for (const [because, judged, expected] of ROWS)
    it(`${expected}: ${because}`, () => assert.equal(kstatusOf(judged), expected))
})
