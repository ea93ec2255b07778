/** What is secret in a letter that waits: sealed with the master key, bound to its row. */
import type { Sealer, SealPlace } from '../../lib/credentials/seal.ts'

/** Links' tokens and codes, by the names under which letters know them. */
export type LetterSecret = Readonly<Record<string, string>>

/** Where it lies. */
export const letterPlace = (letterId: string): SealPlace => ({
  table: 'mail_outbox',
  column: 'sealed_secret',
  rowId: letterId,
  version: 1n,
})

export const sealSecret = (sealer: Sealer, letterId: string, secret: LetterSecret): string =>
  sealer.seal(letterPlace(letterId), JSON.stringify(secret))

/** @throws SealError */
export const openSecret = (sealer: Sealer, letterId: string, sealed: string | null): LetterSecret =>
  sealed === null ? {} : (JSON.parse(sealer.open(letterPlace(letterId), sealed)) as LetterSecret)
