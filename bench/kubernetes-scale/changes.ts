/** How long a change of an Environment waits for the operator's first write of a child of it, by the API server's clock alone. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { AuditLine, AuditLog } from '../../testkit/kubernetes/audit-log.ts'
import { childrenName, type Environments } from './environments.ts'

const WRITES = new Set(['create', 'update', 'patch', 'delete'])
/** The log is written a moment after an answer. */
const LOGGED_MS = 2_000

/** Whether the operator changed something of an environment, its events aside. */
export const isOperatorsWrite = ({ userAgent, verb, group, resource }: AuditLine): boolean =>
  userAgent.startsWith('svc-operator/') && WRITES.has(verb) && group !== 'events.k8s.io' && resource !== 'leases'

/**
 * From the arrival of each change to that of the first write of a child after it.
 * @throws Error when a change led to none
 */
export const firstChildWrites = (lines: Iterable<AuditLine>, changed: readonly ResourceKey[]): number[] => {
  const waiting = new Map<string, number>()
  const names = new Map(changed.map(key => [`${key.namespace}/${key.name}`, `${key.namespace}/${childrenName(key)}`]))
  const found: number[] = []
  for (const line of [...lines].sort((a, b) => a.at - b.at)) {
    const { userAgent, verb, resource, namespace, name, at } = line
    if (userAgent.startsWith('svc-test/') && verb === 'patch' && resource === 'environments') {
      const child = names.get(`${namespace}/${name}`)
      if (child !== undefined) waiting.set(child, at)
    } else if (isOperatorsWrite(line)) {
      for (const [child, since] of waiting) {
        if (!`${namespace}/${name}`.startsWith(child)) continue
        found.push(at - since)
        waiting.delete(child)
      }
    }
  }
  if (waiting.size > 0 || found.length < changed.length)
    throw new Error(`Only ${found.length} of ${changed.length} changes led to a write`)
  return found
}

/** Makes a change of each environment, one every so many milliseconds. @returns how long each waited */
export const changeEach = async (
  log: AuditLog,
  environments: Environments,
  changed: readonly ResourceKey[],
  everyMs: number,
): Promise<number[]> => {
  const asked: Promise<void>[] = []
  const start = performance.now()
  for (const [i, key] of changed.entries()) {
    // By the clock, so that a slow call makes no pause.
    await sleep(Math.max(0, start + i * everyMs - performance.now()))
    asked.push(environments.change(key, 'Retain'))
  }
  await Promise.all(asked)
  for (const end = Date.now() + 60_000; ; ) {
    await sleep(LOGGED_MS)
    try {
      return firstChildWrites(log.each(), changed)
    } catch (error) {
      if (Date.now() > end) throw error
    }
  }
}
