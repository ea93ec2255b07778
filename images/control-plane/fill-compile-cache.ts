/**
 * Fills NODE_COMPILE_CACHE, when the image is built, with everything that the two programs load, what they load lazily
 * included: compiled and stripped of types, so that a start compiles nothing.
 */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { flushCompileCache } from 'node:module'

const PROGRAMS = globSync('{apiserver/{main,migrate,new-user,verify-audit},operator/main}.ts')

// Without settings they load everything and then say which setting is missing.
for (const program of PROGRAMS) {
  const { status, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' })
  if (status !== 1 || stderr === '') throw new Error(`${program} did not refuse to start without settings: ${stderr}`)
}
// A worker's file runs when it is imported, so it is left to compile when it is first needed.
for (const module of globSync('{apiserver,operator,runtime}/**/*.ts')) {
  if (!PROGRAMS.includes(module) && !module.endsWith('-worker.ts')) await import(`${process.cwd()}/${module}`)
}
await import('@kubernetes/client-node')
flushCompileCache()
console.log(`Filled the compile cache for ${PROGRAMS.join(' and ')}`)
