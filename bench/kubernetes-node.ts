/**
 * The figures of an installation on a cluster with a node, each beside its floor in the same run. Deletes every environment of
 * the cluster. Run: BENCH_NODE=1 KUBECONFIG=… SERVICE_TEST_AUDIT_LOG=… node bench/kubernetes-node.ts [environments]
 */
import { clearAtEnd } from '../testkit/at-end.ts'
import { AuditLog, auditLogOf } from '../testkit/kubernetes/audit-log.ts'
import { type Figure, quantile, renderFigures, seconds } from './figure.ts'
import { type AtOnce, atOnce } from './node/at-once.ts'
import { type BenchWorld, openBenchWorld } from './node/bench-world.ts'
import { type Calls, callsBetween, summed } from './node/calls.ts'
import { type Life, live, type OneByOne, oneByOne, type Step, type Steps } from './node/one-by-one.ts'
import { MILESTONES } from './node/sightings.ts'
import { type SleepAndWake, sleepAndWake } from './node/sleep-and-wake.ts'

const ENVIRONMENTS = Number(process.argv[2] ?? 30)
const SLEEPS = Math.min(10, ENVIRONMENTS)
const AT_ONCE = 10
const ROUNDS = 2

const half = (values: readonly number[]): number => quantile(values, 0.5)
const most = (values: readonly number[]): string => `${seconds(half(values))} / ${seconds(quantile(values, 0.99))}`
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)
const stepsOf = (all: readonly Steps[], step: Step): readonly number[] => all.flatMap(steps => steps.get(step) ?? [])

const lifeFigures = ({ lives, bare }: OneByOne): readonly Figure[] => {
  const steps = lives.map(life => life.steps)
  return [
    {
      name: `create → ready, ${lives.length} one after another, p50 / p99`,
      value: most(stepsOf(steps, 'succeeded')),
      aim: 'p50 ≤ 4 s, p99 ≤ 8 s',
    },
    { name: '… → a client has signed in, p50 / p99', value: most(stepsOf(steps, 'signed in')), aim: 'shown' },
    {
      name: `floor: bare StatefulSet → pod Ready, ${bare.length} in between, p50 / p99`,
      value: most(stepsOf(bare, 'pod ready')),
      aim: 'floor',
    },
    { name: 'delete → gone, p50 / p99', value: most(lives.map(({ deleteMs }) => deleteMs)), aim: 'shown' },
  ]
}

const manyFigures = ({ ours, bare, ourSteps }: AtOnce): readonly Figure[] => [
  {
    name: `create → all ready, ${AT_ONCE} at once, each of ${ours.length} rounds`,
    value: ours.map(seconds).join(', '),
    aim: '≤ 13 s',
  },
  {
    name: '… → a client has signed in to each, slowest',
    value: seconds(Math.max(...stepsOf(ourSteps, 'signed in'))),
    aim: 'shown',
  },
  { name: `floor: ${AT_ONCE} bare ones at once`, value: bare.map(seconds).join(', '), aim: 'floor' },
  { name: 'ten at once over their floor', value: (sum(ours) / sum(bare)).toFixed(2), aim: '≤ 1.3' },
]

const sleepFigures = ({ suspend, resume, signedIn, bareStop, bareStart }: SleepAndWake): readonly Figure[] => [
  { name: `suspend → no pod, ${suspend.length} times, p50 / p99`, value: most(suspend), aim: '≤ 3 s' },
  { name: 'floor: bare one scaled to zero, p50 / p99', value: most(bareStop), aim: 'floor' },
  { name: `resume → ready, p50 / p99`, value: most(resume), aim: 'p50 ≤ 3 s' },
  { name: '… → a client has signed in, p50 / p99', value: most(signedIn), aim: 'shown' },
  { name: 'floor: bare one scaled to one, p50 / p99', value: most(bareStart), aim: 'floor' },
]

const callFigures = (name: string, calls: readonly Calls[], aim: string): readonly Figure[] => {
  const counted = (of: (calls: Calls) => readonly string[]): string => {
    const counts = calls.map(each => of(each).length)
    return `${half(counts)} / ${Math.max(...counts)}`
  }
  return [
    {
      name: `changing calls of the operator per ${name}, p50 / most (leases left out)`,
      value: counted(({ operator }) => operator),
      aim,
    },
    { name: `… of the API server`, value: counted(({ apiServer }) => apiServer), aim: 'shown' },
    { name: `events per ${name}, most`, value: String(Math.max(...calls.map(({ events }) => events))), aim: 'apart' },
  ]
}

const STEPS: readonly Step[] = ['answered', ...MILESTONES, 'succeeded', 'signed in']

/** Where the time goes: when each step was seen, after the call. */
const renderSteps = (
  title: string,
  at: (times: readonly number[]) => number,
  ours: readonly Steps[],
  bare: readonly Steps[],
): string => {
  const shown = (all: readonly Steps[], step: Step): string => {
    const times = stepsOf(all, step)
    return times.length === 0 ? '' : seconds(at(times))
  }
  const rows = STEPS.map(step => [step, shown(ours, step), shown(bare, step)] as const)
  return [
    `| ${title} | ours | bare |`,
    '| --- | --- | --- |',
    ...rows.filter(([, ...times]) => times.some(time => time !== '')).map(row => `| ${row.join(' | ')} |`),
  ].join('\n')
}

const measure = async (world: BenchWorld): Promise<string> => {
  const auditPath = auditLogOf('node')
  const audit = auditPath === undefined ? undefined : new AuditLog(auditPath)
  // The first of a project: its namespace, its bindings.
  const first = await live(world, 'first')
  const one = await oneByOne(world, ENVIRONMENTS)
  const lines = audit === undefined ? undefined : await audit.linesUntil(world.cluster.objects)
  const figures = [...lifeFigures(one)]
  const many = await atOnce(world, AT_ONCE, ROUNDS)
  figures.push(...sleepFigures(await sleepAndWake(world, SLEEPS)), ...manyFigures(many))
  const parts: string[] = []
  if (lines === undefined) console.error('SKIPPED: the count of calls: set SERVICE_TEST_AUDIT_LOG')
  else {
    const calls = (lives: readonly Life[], part: 'created' | 'deleted'): readonly Calls[] =>
      lives.map(life => callsBetween(lines, life[part].from, life[part].to))
    figures.push(...callFigures('create', calls(one.lives, 'created'), '≤ 14'))
    figures.push(...callFigures('delete', calls(one.lives, 'deleted'), '≤ 12'))
    const told = (title: string, of: readonly Calls[]): string => {
      const [longest] = [...of].sort((a, b) => b.operator.length - a.operator.length)
      return `${title}: operator ${summed(longest?.operator ?? [])}; API server ${summed(longest?.apiServer ?? [])}.`
    }
    parts.push(
      told('The most of a create', calls(one.lives, 'created')),
      told('The most of a delete', calls(one.lives, 'deleted')),
      told('The first of a project', calls([first], 'created')),
    )
  }
  const single = [one.lives.map(({ steps }) => steps), one.bare] as const
  return [
    renderFigures(figures),
    renderSteps('one after another: seen after its call, p50', half, ...single),
    renderSteps(
      `${AT_ONCE} at once: seen after the first call, the last one`,
      times => Math.max(...times),
      many.ourSteps,
      many.bareSteps,
    ),
    ...parts,
  ].join('\n\n')
}

if (import.meta.main) {
  if (process.env['BENCH_NODE'] !== '1')
    throw new Error('This deletes every environment of its cluster: set BENCH_NODE=1')
  try {
    console.log(await measure(await openBenchWorld()))
  } finally {
    await clearAtEnd()
  }
}
