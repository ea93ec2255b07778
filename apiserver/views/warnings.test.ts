import assert from 'node:assert/strict'
import type { Condition } from '../../crds/conditions.ts'
import { warningsOf } from './warnings.ts'

const EXPIRY = '2027-01-01T00:00:00.000Z'
const condition = (type: Condition['type'], status: Condition['status'], reason: string): Condition => ({
  type,
  status,
  reason,
  message: `${reason}!`,
  observedGeneration: 1,
  lastTransitionTime: EXPIRY,
})
const EXPIRING = condition('Expiring', 'True', 'ExpiresSoon')
const IN_GRACE = condition('Expired', 'False', 'InGrace')
const PROTECTED = condition('Expired', 'True', 'Protected')
const DISK = condition('StorageReady', 'False', 'DiskNearlyFull')
const UNCLEAN = condition('UncleanStop', 'True', 'NoShutdownCheckpoint')

type Row = Parameters<typeof warningsOf>[0]
const row = (conditions: readonly Condition[], changes: Partial<Row> = {}): Row => ({
  phase: 'ready',
  status: { conditions: [...conditions], expiresAt: EXPIRY },
  expiresAt: new Date(EXPIRY),
  deletionProtection: false,
  ...changes,
})

describe('warningsOf', () => {
  const cases: readonly (readonly [because: string, Row, readonly string[]])[] = [
    [
      'nothing is wrong',
      row([condition('Ready', 'True', 'Ready'), condition('StorageReady', 'True', 'DataPresent')]),
      [],
    ],
    ['nobody has looked yet', row([], { status: null }), []],
    ['a disk fills up', row([DISK]), ['DiskNearlyFull']],
    ['what makes it not ready is told as such', row([DISK], { phase: 'updating' }), []],
    ['a suspended one stopped uncleanly', row([UNCLEAN], { phase: 'suspended' }), ['NoShutdownCheckpoint']],
    ['a preview expires soon, and its disk fills up', row([EXPIRING, DISK]), ['ExpiresSoon', 'DiskNearlyFull']],
    ['it was renewed since', row([EXPIRING], { expiresAt: new Date('2027-02-01T00:00:00Z') }), []],
    ['it is about to be swept', row([IN_GRACE]), ['InGrace']],
    ['it was protected since', row([IN_GRACE], { deletionProtection: true }), []],
    ['its protection alone keeps it', row([PROTECTED], { deletionProtection: true }), ['Protected']],
    ['its protection was lifted since', row([PROTECTED]), []],
    ['it is going anyway', row([EXPIRING, DISK], { phase: 'deleting' }), []],
  ]
  for (const [because, given, reasons] of cases)
    it(because, () =>
      assert.deepEqual(
        warningsOf(given),
        reasons.map(reason => ({ reason, message: `${reason}!` })),
      ),
    )
})
