/**
 * Fills NODE_COMPILE_CACHE, when the image is built, with everything that its programs load, what they load lazily
 * included: compiled and stripped of types, so that a start compiles nothing.
 */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { flushCompileCache } from 'node:module'

/** What does something when it is imported: the commands, which lie in the two folders themselves, and what runs in a worker. */
const isWorker = (module: string): boolean => module.endsWith('-worker.ts')
const commands: string[] = []

// Without settings a command loads everything and then says what it lacks; anything else just ends.
for (const module of globSync('{apiserver,operator}/*.ts', { exclude: ['**/*.test.ts'] })) {
  const { status, stderr } = spawnSync(process.execPath, [module], { encoding: 'utf8' })
  if (status === 0 && stderr === '') continue
  if (
    status === null ||
    stderr === '' ||
    /\b(ERR_MODULE|ERR_UNSUPPORTED|SyntaxError|ReferenceError|TypeError)/.test(stderr)
  )
    throw new Error(`${module} neither ended nor said what it lacks: ${stderr}`)
  commands.push(module)
}
// A worker's file is left to compile when it is first needed.
for (const module of globSync('{apiserver,operator,runtime}/**/*.ts', { exclude: ['**/*.test.ts'] }))
  if (!commands.includes(module) && !isWorker(module)) await import(`${process.cwd()}/${module}`)
await import('@kubernetes/client-node')
await import('qrcode')
flushCompileCache()
console.log(`Filled the compile cache for ${commands.toSorted().join(', ')}`)
