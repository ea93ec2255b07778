/**
 * A control plane that does one thing to one instance and dies after its n-th change to the machine, before it sees that it
 * took effect: `node host-crash-child.ts <home> <verb> <uid> <n>`. With n 0 it lives and prints how many changes it made.
 * Changes are counted where Node makes them; the product knows nothing of it.
 */
import child from 'node:child_process'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const [home = '', verb = '', uid = '', last = '0'] = process.argv.slice(2)
let changes = 0
let counting = false

const kill = process.kill.bind(process)

const changed = (): void => {
  if (!counting) return
  changes++
  if (changes === Number(last)) kill(process.pid, 'SIGKILL')
}

process.kill = (pid, signal) => {
  const sent = kill(pid, signal)
  if (signal !== 0) changed()
  return sent
}

type Call = (...args: unknown[]) => unknown
const calls = fs as unknown as Record<string, Call>
for (const name of ['mkdir', 'rename', 'rm', 'rmdir', 'chown'])
  calls[name] = (
    original =>
    async (...args) => {
      const result = await original(...args)
      changed()
      return result
    }
  )(calls[name]!)
calls['open'] = (
  original =>
  async (...args) => {
    const file = await original(...args)
    if (typeof args[1] === 'string' && args[1] !== 'r') changed()
    return file
  }
)(calls['open']!)

const processes = child as unknown as Record<string, Call>
const { spawn, execFile } = processes
processes['spawn'] = (...args) => {
  const started = spawn!(...args)
  changed()
  return started
}
processes['execFile'] = Object.assign((...args: unknown[]) => execFile!(...args), {
  [promisify.custom]: async (...args: unknown[]) => {
    const result: unknown = await (promisify(execFile as never) as unknown as Call)(...args)
    changed()
    return result
  },
})
syncBuiltinESMExports()

const { newRef, openTestHost, TEST_SPEC, untilState } = await import('./local-host.ts')
const ref = newRef('crash', uid)
const host = await openTestHost(home)
counting = true
switch (verb) {
  case 'start':
    await host.start(ref, TEST_SPEC)
    await untilState(host, ref, ['running'])
    break
  case 'stop':
    await host.stop(ref)
    await untilState(host, ref, ['stopped'])
    break
  default:
    while (!(await host.destroy(ref, verb === 'retain' ? 'Retain' : 'Delete')).done) await sleep(20)
}
counting = false
await host.stopAll({ keepDatabases: true })
console.log(changes)
process.exit(0)
