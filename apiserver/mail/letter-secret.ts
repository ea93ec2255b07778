/** What is secret in a letter that waits: sealed with the master key, bound to its row. */
import type { Sealer } from '../../lib/credentials/seal.ts'
import { letterPlace } from '../store/mail-outbox.ts'

/** Links' tokens and codes, by the names under which letters know them. */
export type LetterSecret = Readonly<Record<string, string>>

export const sealSecret = (sealer: Sealer, letterId: string, secret: LetterSecret): string =>
  sealer.seal(letterPlace(letterId), JSON.stringify(secret))

/** @throws SealError */
export const openSecret = (sealer: Sealer, letterId: string, sealed: string | null): LetterSecret =>
  sealed === null ? {} : (JSON.parse(sealer.open(letterPlace(letterId), sealed)) as LetterSecret)
