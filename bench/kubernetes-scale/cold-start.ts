/** An operator's start among many environments, and how soon a change is served meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { OperatorProcess } from '../../e2e/kubernetes/operator-process.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { AuditLog } from '../../testkit/kubernetes/audit-log.ts'
import { firstChildWrites } from './changes.ts'
import type { Environments } from './environments.ts'

const EVERY_MS = 50
const LOGGED_MS = 3_000

export interface ColdStart {
  /** From its launch until it has looked at every environment. */
  readonly ms: number
  /** How long each change waited that was made after it had seen the cluster, and before it had looked at all of it. */
  readonly waited: readonly number[]
}

const has = async (url: string, text: RegExp): Promise<boolean> => {
  const answer = await fetch(url).catch(() => undefined)
  return answer?.ok === true && text.test(await answer.text())
}

/** `retained`: environments that were changed once, and are changed back, one after another, until the start is over. */
export const coldStart = async (
  operator: OperatorProcess,
  environments: Environments,
  log: AuditLog,
  retained: readonly ResourceKey[],
): Promise<ColdStart> => {
  const begin = performance.now()
  const start = { isOver: false }
  const starting = operator.start().then(() => (start.isOver = true))
  const changed: ResourceKey[] = []
  // It leads and reconciles once something was taken from its queue.
  const works = /^workqueue_queue_duration_seconds_count\{[^}]*name="environment"[^}]*\} [1-9]/m
  while (!start.isOver && !(await has(operator.metricsUrl, works))) await sleep(20)
  for (const key of retained) {
    if (start.isOver) break
    await environments.change(key, 'Delete')
    changed.push(key)
    await sleep(EVERY_MS)
  }
  await starting
  const ms = performance.now() - begin
  await sleep(LOGGED_MS)
  return { ms, waited: firstChildWrites(log.each(), changed) }
}
