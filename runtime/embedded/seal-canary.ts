/** A sealed constant in the store's database: a process whose key does not open it has the wrong key and must not write. */
import { createSealer, type MasterKeys, SealError, type SealPlace } from '../../lib/credentials/seal.ts'

/** Where it lies. */
export const CANARY: SealPlace = { table: 'seal_canary', column: 'sealed', rowId: 'canary', version: 1n }
/** What is inside. */
export const CANARY_TEXT = 'This key opens what is sealed here'

/** Whether one of the keys is the one that sealed a canary. */
export const opensCanary = (keys: MasterKeys, sealed: string): boolean => {
  try {
    return createSealer(keys).open(CANARY, sealed) === CANARY_TEXT
  } catch (error) {
    if (error instanceof SealError) return false
    throw error
  }
}
