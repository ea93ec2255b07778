/** Decisions as tables: a row gives an environment and what was seen of it, and says what must follow, and why. */
import assert from 'node:assert/strict'
import { conditionOf } from '../crds/conditions.ts'
import type { EnvironmentStatus } from '../crds/environment.ts'
import { operatorConfig } from '../operator/config/config.ts'
import type { ActionKind } from '../operator/environment/action.ts'
import { decide } from '../operator/environment/decide.ts'
import type { Decision } from '../operator/environment/decision.ts'
import { figuresText } from '../operator/environment/defaults.ts'
import { CREATED_MS, type EnvironmentModifier, environment, FIGURES, isoAfter, observedOf } from './gen.ts'

export interface DecisionRow {
  readonly because: string
  readonly given: readonly EnvironmentModifier[]
  readonly seen?: Parameters<typeof observedOf>[1]
  /** Seconds after creation. */
  readonly at?: number
  readonly phase: string | undefined
  readonly action?: string
  /** `Type=Status/Reason`, `Type=Status/*` or `Type=absent`. */
  readonly conditions?: readonly string[]
  /** Outcome, attempts and message. */
  readonly operation?: string
}

const { limits } = operatorConfig({})

/** The host took the figures that generated environments name. */
export const STARTED = { startedWith: figuresText(FIGURES) }
/** And a sign-in was proven not long ago. */
export const PROVEN = { ...STARTED, provenAtMs: CREATED_MS, credentialsApplied: true }
/** An attempt that was seen to begin so many seconds after creation. */
export const attempt = (seconds: number) => ({ since: isoAfter(seconds), failuresBefore: 0, stopped: false })

/** The operation of the request `request(verb)`, under way. */
export const running = (verb: string): NonNullable<EnvironmentStatus['operation']> => ({
  id: `op_${verb}1`,
  seq: 1,
  outcome: 'running',
  attempts: 1,
})

export const decided = (row: DecisionRow): Decision =>
  decide(observedOf(environment(...row.given), row.seen), CREATED_MS + (row.at ?? 0) * 1000, limits)

/** Actions whose decision leaves the status as it was. */
const WORDLESS: ReadonlySet<ActionKind> = new Set(['add-finalizer', 'release', 'expire', 'set-deletion-policy'])

/** One test a row, and one for what holds for all of them. */
export const describeDecisions = (rows: readonly DecisionRow[]): void => {
  for (const row of rows) it(row.because, () => holdsFor(row))

  it('has Reconciling or Stalled whenever it is not as it should be, never both', () => {
    for (const row of rows) {
      const { status, action } = decided(row)
      if (action !== undefined && WORDLESS.has(action.kind)) continue
      const { generation } = environment(...row.given).metadata
      const [ready, reconciling, stalled] = (['Ready', 'Reconciling', 'Stalled'] as const).map(type =>
        conditionOf(status.conditions, type),
      )
      assert.ok(reconciling === undefined || stalled === undefined, row.because)
      for (const condition of status.conditions ?? [])
        assert.equal(condition.observedGeneration, generation, row.because)
      if (status.phase === 'provisioning' || status.phase === 'updating' || status.phase === 'failed_recoverable') {
        assert.equal(ready?.status, 'False', row.because)
        assert.equal((reconciling ?? stalled)?.status, 'True', row.because)
      }
    }
  })
}

const holdsFor = (row: DecisionRow): void => {
  const { status, action } = decided(row)
  assert.equal(status.phase, row.phase)
  assert.equal(action?.kind, row.action)
  for (const expected of row.conditions ?? []) {
    const [type = '', said = ''] = expected.split('=')
    const condition = conditionOf(status.conditions, type as 'Ready')
    const actual = condition === undefined ? 'absent' : `${condition.status}/${condition.reason}`
    if (said.endsWith('*')) assert.ok(actual.startsWith(said.slice(0, -1)), `${type} is ${actual}`)
    else assert.equal(actual, said, type)
  }
  if (row.operation === undefined) return
  const { outcome, attempts, message } = status.operation ?? {}
  assert.equal([outcome, attempts, message].filter(part => part !== undefined).join(' '), row.operation)
}
