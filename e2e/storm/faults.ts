/** What happens to a box during a storm. Every fault leaves it running, or started again. */
import { readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findPostmaster, processesOf } from '../../runtime/postgres/postmaster-pid.ts'
import type { SeededRandom } from '../../testkit/seeded-random.ts'
import type { BoxProcess } from '../box-process.ts'

const signal = (pid: number | undefined, name: NodeJS.Signals): void => {
  try {
    if (pid !== undefined) process.kill(pid, name)
  } catch {
    // It ended just now.
  }
}

const postmaster = (folder: string): number | undefined => findPostmaster(folder)?.pid

/** A random environment's data folder, if there is one. */
const someEnvironment = (box: BoxProcess, random: SeededRandom): string | undefined => {
  const { environments } = box.dataFolders()
  return environments.length === 0 ? undefined : random.pick(environments)
}

type Fault = (box: BoxProcess, random: SeededRandom) => Promise<void>

const onEnvironment =
  (act: (dataFolder: string, random: SeededRandom) => Promise<void> | void): Fault =>
  async (box, random) => {
    const folder = someEnvironment(box, random)
    if (folder !== undefined) await act(folder, random)
  }

const restart = async (box: BoxProcess, how: NodeJS.Signals, random: SeededRandom): Promise<void> => {
  await box.stop(how)
  await sleep(random.between(0, 500))
  await box.start()
}

/** Freezes a process for a while. */
const freeze = async (pid: number | undefined, ms: number): Promise<void> => {
  signal(pid, 'SIGSTOP')
  await sleep(ms)
  signal(pid, 'SIGCONT')
}

/** A random process of a server that is not its postmaster: Postgres then restarts all of them. */
const someBackend = (folder: string, random: SeededRandom): number | undefined => {
  const others = processesOf(folder).filter(pid => pid !== postmaster(folder))
  return others.length === 0 ? undefined : random.pick(others)
}

/** What happens to the control plane's process. */
const TO_CONTROL_PLANE = {
  kill: (box, random) => restart(box, 'SIGKILL', random),
  stop: (box, random) => restart(box, 'SIGTERM', random),
  killDuringItsStart: async (box, random) => {
    await box.stop('SIGKILL')
    box.launch()
    await sleep(random.between(0, 1500))
    await restart(box, 'SIGKILL', random)
  },
  freeze: (box, random) => freeze(box.child.pid, random.between(500, 4000)),
  cutPower: async (box, random) => {
    await box.stop('SIGKILL')
    await box.killPostgres()
    await sleep(random.between(0, 200))
    await box.start()
  },
} satisfies Readonly<Record<string, Fault>>

/** What happens to the databases, the control plane's own included. */
const TO_DATABASES = {
  killOurs: box => {
    signal(postmaster(box.dataFolders().controlPlane), 'SIGKILL')
    return Promise.resolve()
  },
  killOurBackend: (box, random) => {
    signal(someBackend(box.dataFolders().controlPlane, random), 'SIGKILL')
    return Promise.resolve()
  },
  freezeOurs: (box, random) => freeze(postmaster(box.dataFolders().controlPlane), random.between(500, 4000)),
  freezeOurBackend: (box, random) =>
    freeze(someBackend(box.dataFolders().controlPlane, random), random.between(500, 8000)),
  kill: onEnvironment(folder => signal(postmaster(folder), 'SIGKILL')),
  killBackend: onEnvironment((folder, random) => signal(someBackend(folder, random), 'SIGKILL')),
  freeze: onEnvironment((folder, random) => freeze(postmaster(folder), random.between(500, 6000))),
  removeConfiguration: onEnvironment((folder, random) => {
    const root = dirname(folder)
    const files = readdirSync(root).filter(name => name.endsWith('.conf'))
    if (files.length > 0) rmSync(join(root, random.pick(files)), { force: true })
    signal(postmaster(folder), 'SIGKILL')
  }),
  removeSocket: onEnvironment(folder => {
    const sockets = findPostmaster(folder)?.socketFolder
    if (sockets !== undefined) rmSync(sockets, { recursive: true, force: true })
  }),
} satisfies Readonly<Record<string, Fault>>

/** Lets one random fault happen to the control plane and says which. One at a time. */
export const strikeControlPlane = async (box: BoxProcess, random: SeededRandom): Promise<string> => {
  const name = random.weighted({ kill: 5, stop: 1, killDuringItsStart: 2, freeze: 1, cutPower: 1 })
  await TO_CONTROL_PLANE[name](box, random)
  return `control plane: ${name}`
}

/** Lets one random fault happen to a database, beside what happens to the control plane. */
export const strikeDatabase = async (box: BoxProcess, random: SeededRandom): Promise<string> => {
  const name = random.pick(Object.keys(TO_DATABASES) as (keyof typeof TO_DATABASES)[])
  await TO_DATABASES[name](box, random)
  return `database: ${name}`
}
