/** Whether another account can get at our folders: Postgres does not run as root, a checkout may lie in a 0700 folder. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { RunAs } from './run-as.ts'
import { childIdentity } from './server-process.ts'

/**
 * Whether an account can pass through to a path and read (and, for folders and programs, enter or run) it. Asked by a child of
 * that account: access lists and mount options count as well as modes. Always true where Postgres runs as ourselves.
 */
export const canReach = async (path: string, account: RunAs | undefined): Promise<boolean> => {
  if (account === undefined) return true
  try {
    await promisify(execFile)('/bin/sh', ['-c', 'test -x "$1"', 'sh', path], {
      ...childIdentity(account),
      timeout: 10_000,
    })
    return true
  } catch {
    return false
  }
}
