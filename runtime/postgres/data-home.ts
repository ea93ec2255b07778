import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { writeFileDurably } from '../files/durable-file.ts'
import { canReach } from './reach.ts'
import type { RunAs } from './run-as.ts'

/** Where data goes when the server's account cannot pass through to the folder that was asked for. */
const ELSEWHERE = '/var/lib/svc'

/**
 * The folder below which Postgres' data lives: `home` itself, or, where the server's account cannot pass through to it,
 * `/var/lib/svc/<hash of home>`, told in `home/location`. Decided once: a location on file is kept, so that data is never
 * looked for in a second place. Makes the folder; widens the mode of none that it did not make.
 * @throws Error when the account cannot pass through to the second place either
 */
export const dataHome = async (home: string, account: RunAs | undefined, elsewhere = ELSEWHERE): Promise<string> => {
  const folder = resolve(home)
  const location = join(folder, 'location')
  if (existsSync(location)) return reachable((await readFile(location, 'utf8')).trim(), account)
  // 0711: the account passes through and lists nothing; secrets lie in 0700 folders of their own.
  await mkdir(folder, { recursive: true, mode: 0o711 })
  if (await canReach(folder, account)) return folder
  const second = join(elsewhere, createHash('sha256').update(folder).digest('hex').slice(0, 12))
  await mkdir(second, { recursive: true, mode: 0o711 })
  await reachable(second, account)
  await writeFileDurably(location, `${second}\n`, { mode: 0o644 })
  return second
}

const reachable = async (folder: string, account: RunAs | undefined): Promise<string> => {
  if (!existsSync(folder)) throw new Error(`Cannot use ${folder}: the location on file is not there`)
  if (await canReach(folder, account)) return folder
  throw new Error(
    `Cannot keep data in ${folder}: "${account?.name ?? ''}", which Postgres runs as, cannot pass through to it`,
  )
}
