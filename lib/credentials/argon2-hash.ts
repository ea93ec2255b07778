/** Password hashes in the PHC string format, `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>`: read before they are trusted. */
import { randomBytes } from 'node:crypto'

/** What a hash costs to make and to check. */
export interface Argon2Cost {
  /** KiB. */
  readonly memory: number
  readonly passes: number
  readonly lanes: number
}

/** What new hashes are made with (OWASP: 19 MiB, two passes, one lane). */
export const CURRENT_COST: Argon2Cost = { memory: 19_456, passes: 2, lanes: 1 }

const FORM = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const MEMORY = { min: 19_456, max: 262_144 }
const PASSES = { min: 2, max: 10 }
const LANES = { min: 1, max: 4 }
const BYTES = { salt: { min: 16, max: 64 }, hash: { min: 32, max: 64 } }

const within = (value: number, { min, max }: { readonly min: number; readonly max: number }): boolean =>
  value >= min && value <= max
const bytesOf = (unpadded: string): number => Math.floor((unpadded.length * 3) / 4)

/**
 * The cost of a hash; undefined when it is none that we check: another kind, weaker than today's least, or so costly that
 * one check would hold a core for seconds.
 */
export const readArgon2Hash = (phc: string): Argon2Cost | undefined => {
  const [, memory, passes, lanes, salt = '', hash = ''] = FORM.exec(phc) ?? []
  const cost = { memory: Number(memory), passes: Number(passes), lanes: Number(lanes) }
  const isGood =
    within(cost.memory, MEMORY) &&
    within(cost.passes, PASSES) &&
    within(cost.lanes, LANES) &&
    within(bytesOf(salt), BYTES.salt) &&
    within(bytesOf(hash), BYTES.hash)
  return isGood ? cost : undefined
}

/**
 * A hash of today's cost that no password fits: its bytes are drawn, not computed. What is checked against it takes as long
 * as any other check.
 */
export const decoyHash = (): string => {
  const { memory, passes, lanes } = CURRENT_COST
  const unpadded = (bytes: number): string => randomBytes(bytes).toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=${lanes}$${unpadded(16)}$${unpadded(32)}`
}

/** Whether a hash was made with what new ones are made with. */
export const isCurrent = (phc: string): boolean => {
  const cost = readArgon2Hash(phc)
  return (
    cost?.memory === CURRENT_COST.memory && cost.passes === CURRENT_COST.passes && cost.lanes === CURRENT_COST.lanes
  )
}
