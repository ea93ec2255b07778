/** What an operator may ask of the API server for an environment's life: bench/call-budget.json, counted in the audit log. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditLine } from '../testkit/kubernetes/audit-log.ts'

/** Calls by `verb resource`, e.g. `patch statefulsets`. */
export type Calls = Readonly<Record<string, number>>

export interface CallBudget {
  /** From an Environment without anything to `ready`, for each. */
  readonly create: Calls
  /** For the first Environment in a project's namespace. */
  readonly project: Calls
  /** From a deletion that was asked for to nothing, for each. */
  readonly delete: Calls
}

/** More than this above the budget is too much. */
const TOLERANCE = 0.05
/** So much below it is a budget to be lowered; less is how it goes where some needed a look less. */
const FALLEN = 1
/** What changes something, at most; events and leases left out. */
const MOST_CHANGES = { create: 14, delete: 12 } as const

const FILE = join(import.meta.dirname, 'call-budget.json')
/** What belongs to a namespace and not to one environment. */
const OF_PROJECTS = new Set(['namespaces', 'rolebindings', 'serviceaccounts', 'networkpolicies'])
const CHANGES = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])

/** The committed budget. */
export const callBudget = (): CallBudget => JSON.parse(readFileSync(FILE, 'utf8')) as CallBudget

/** Of how many, and whose. */
export interface Counted {
  readonly environments: number
  readonly projects: number
  /** The operator's own: what it does there on its own account is left out. */
  readonly namespace: string
}

/** What belongs to environments: not the lease, events, the authority, and what reflectors read of the whole cluster. */
export const isCounted = ({ userAgent, verb, resource, group, namespace }: AuditLine, own: string): boolean =>
  userAgent.startsWith('svc-operator/') &&
  verb !== 'watch' &&
  (verb !== 'list' || namespace !== '') &&
  group !== 'events.k8s.io' &&
  resource !== 'leases' &&
  (namespace !== own || resource === 'deletionrecords')

/** The calls for each environment (or project), on average. */
const averages = (lines: readonly AuditLine[], over: number): Calls => {
  const counts = new Map<string, number>()
  for (const { verb, resource } of lines)
    counts.set(`${verb} ${resource}`, (counts.get(`${verb} ${resource}`) ?? 0) + 1)
  return Object.fromEntries([...counts].sort().map(([what, count]) => [what, Math.round((count / over) * 1000) / 1000]))
}

/** The calls of a creation, those of the projects apart. */
export const creationCalls = (
  lines: readonly AuditLine[],
  counted: Counted,
): Pick<CallBudget, 'create' | 'project'> => {
  const ours = lines.filter(line => isCounted(line, counted.namespace))
  return {
    create: averages(
      ours.filter(({ resource }) => !OF_PROJECTS.has(resource)),
      counted.environments,
    ),
    project: averages(
      ours.filter(({ resource }) => OF_PROJECTS.has(resource)),
      counted.projects,
    ),
  }
}

/** The calls of a deletion. */
export const deletionCalls = (lines: readonly AuditLine[], counted: Counted): Pick<CallBudget, 'delete'> => ({
  delete: averages(
    lines.filter(line => isCounted(line, counted.namespace)),
    counted.environments,
  ),
})

const sum = (calls: Calls, counts: (verb: string) => boolean): number =>
  Object.entries(calls).reduce((total, [what, count]) => total + (counts(what.split(' ')[0] ?? '') ? count : 0), 0)

/** How many of the calls change something. */
export const changesIn = (calls: Calls): number => sum(calls, verb => CHANGES.has(verb))
/** How many of them only read. */
export const readsIn = (calls: Calls): number => sum(calls, verb => !CHANGES.has(verb))

/** What was asked more often than the budget allows, in words; a call that it does not know is too much. */
export const overBudget = (made: Partial<CallBudget>, budget: CallBudget = callBudget()): string[] =>
  (['create', 'project', 'delete'] as const).flatMap(phase => {
    const calls = made[phase] ?? {}
    const over = Object.entries(calls)
      .filter(([what, count]) => count > (budget[phase][what] ?? 0) * (1 + TOLERANCE))
      .map(([what, count]) => `${phase}: ${what} ${count} times for each, ${budget[phase][what] ?? 0} are allowed`)
    const changes = changesIn(calls)
    if (phase !== 'project' && changes > MOST_CHANGES[phase])
      over.push(`${phase}: ${changes} calls that change something for each, ${MOST_CHANGES[phase]} are allowed`)
    return over
  })

/** What was asked less often than the budget says, as a hint to lower it; undefined: nothing. */
export const underBudget = (made: Partial<CallBudget>, budget: CallBudget = callBudget()): string | undefined => {
  const fallen = (['create', 'project', 'delete'] as const).flatMap(phase =>
    made[phase] === undefined
      ? []
      : Object.entries(budget[phase])
          .filter(([what, count]) => (made[phase]?.[what] ?? 0) <= count - FALLEN)
          .map(([what, count]) => `${phase}: ${what} ${made[phase]?.[what] ?? 0} instead of ${count}`),
  )
  return fallen.length === 0
    ? undefined
    : `Calls fell (${fallen.join('; ')}): lower bench/call-budget.json, so that they stay there`
}
