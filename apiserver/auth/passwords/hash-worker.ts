/**
 * The process in which passwords are hashed and checked: apart from the server, whose other answers would wait for it, at
 * low priority, and ended with it. Passwords come through the pipe between the two and go nowhere else.
 */
import { constants, setPriority } from 'node:os'
import { hash, verify } from '@node-rs/argon2'
import { CURRENT_COST, readArgon2Hash } from '../../../lib/credentials/argon2-hash.ts'

/** The package's `Algorithm.Argon2id`, a const enum, which type stripping cannot read. */
const ARGON2ID = 2

/** One job; without a hash to check against it makes one. */
export interface HashJob {
  readonly id: number
  readonly password: string
  readonly against?: string
}

/** What came of it: a hash, whether it fits, or why neither. */
export interface HashResult {
  readonly id: number
  readonly hash?: string
  readonly fits?: boolean
  readonly error?: string
}

const run = async ({ id, password, against }: HashJob): Promise<HashResult> => {
  try {
    if (against === undefined) {
      const { memory, passes, lanes } = CURRENT_COST
      const options = { algorithm: ARGON2ID, memoryCost: memory, timeCost: passes, parallelism: lanes }
      return { id, hash: await hash(password, options) }
    }
    // A hash that would cost more than any of ours is never begun.
    return { id, fits: readArgon2Hash(against) !== undefined && (await verify(against, password)) }
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : 'unknown' }
  }
}

setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
// A Ctrl-C reaches the whole group: the server finishes what it is at, and this ends with it.
process.on('SIGINT', () => undefined)
process.once('disconnect', () => process.exit())
process.on('message', (job: HashJob) => {
  void run(job).then(result => process.connected && process.send?.(result))
})
