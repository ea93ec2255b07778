import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const PROGRAM = join(import.meta.dirname, '../kubernetes-fakers.ts')

/** Starts bench/kubernetes-fakers.ts. @returns how to end it; that fails when anything had gone wrong there */
export const startFakers = async (): Promise<() => Promise<void>> => {
  const child: ChildProcess = spawn(process.execPath, [PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] })
  await Promise.race([once(child.stdout!, 'data'), once(child, 'exit')])
  if (child.exitCode !== null) throw new Error('The fakers did not start')
  return async () => {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const [code] = (await ended) as [number | null]
    if (code !== 0) throw new Error(`The fakers ended with ${String(code)}`)
  }
}
