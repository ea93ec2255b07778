/** What the control plane costs while nothing is asked of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Figure } from './figure.ts'
import { cpuSeconds, residentMib } from './process-cost.ts'

/** CPU and memory of a process over a quiet stretch of time. */
export const idle = async (pid: number, environments: number, forMs: number): Promise<Figure[]> => {
  await sleep(5_000)
  const before = cpuSeconds(pid)
  const start = performance.now()
  await sleep(forMs)
  const share = ((cpuSeconds(pid) - before) / ((performance.now() - start) / 1000)) * 100
  return [
    {
      name: `idle CPU of the control plane, ${environments} environments`,
      value: `${share.toFixed(1)} % of a core`,
      aim: 'shown',
    },
    {
      name: `memory of the control plane, ${environments} environments`,
      value: `${residentMib(pid).toFixed(0)} MiB`,
      aim: 'shown',
    },
  ]
}
