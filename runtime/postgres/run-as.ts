import { readFileSync } from 'node:fs'

/** The account that Postgres runs as: it refuses root, and initdb wants a passwd entry. */
export interface RunAs {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** Looks an account up in /etc/passwd. */
const findAccount = (name: string): RunAs | undefined => {
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [account, , uid, gid] = line.split(':')
    if (account === name && uid !== undefined && gid !== undefined) return { name, uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

/**
 * Who Postgres should run as. Not root: ourselves (undefined). As root: the configured account, else `postgres`, else `nobody`.
 * @throws Error when the configured account, or any of the two others, does not exist
 */
export const runAs = (configured: string | undefined): RunAs | undefined => {
  if (process.getuid?.() !== 0) return undefined
  if (configured !== undefined) {
    const account = findAccount(configured)
    if (account === undefined || account.uid === 0)
      throw new Error(`Cannot run Postgres as "${configured}": no such account in /etc/passwd, or it is root`)
    return account
  }
  const account = findAccount('postgres') ?? findAccount('nobody')
  if (account === undefined) throw new Error('Cannot run Postgres: neither "postgres" nor "nobody" is in /etc/passwd')
  return account
}
