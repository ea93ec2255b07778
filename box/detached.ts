/** The control plane behind the terminal: started in a session of its own, heard until it is ready, then left alone. */
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { BoxConfig } from './config/config.ts'
import { processEnvironment } from './config/env.ts'
import { describeHome, prepareHome } from './home-folder.ts'
import { postgresAccount } from './start-control-plane.ts'

/** Tells the program that it is the one behind. */
export const DETACHED_ARGUMENT = '--detached'
/** Where it says what a terminal would show, until it is ready; closing it means ready. */
export const SAY_FD = 3

/**
 * Starts it and passes on what it says until it is ready; when it ends before, its exit code becomes ours. Of our own
 * streams it inherits none.
 * @throws BoxError when there is no account for Postgres, or when the home holds what this version must not touch
 */
export const startDetached = async (config: BoxConfig): Promise<void> => {
  prepareHome(config.home, postgresAccount(config.postgres.user))
  // What the runtime itself says of a crash belongs to the log.
  const log = openSync(describeHome(config.home).logFile, 'a', 0o600)
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', DETACHED_ARGUMENT], {
    detached: true,
    cwd: '/',
    env: { ...processEnvironment(), SERVICE_HOME: config.home, DETACH: '0' },
    stdio: ['ignore', log, log, 'pipe'],
  })
  closeSync(log)
  const ended = new Promise<number>(resolve => child.once('exit', code => resolve(code ?? 1)))
  const saying = child.stdio[SAY_FD]
  if (saying === null || saying === undefined || !('readable' in saying))
    throw new Error('There is no pipe to listen on')
  for await (const line of createInterface({ input: saying })) console.log(line)
  // The pipe is closed by readiness or by the end; an end that comes with it is seen at once.
  const code = await Promise.race([ended, new Promise<undefined>(resolve => setTimeout(resolve, 50, undefined))])
  if (code !== undefined) process.exitCode = code === 0 ? 1 : code
  child.unref()
}
