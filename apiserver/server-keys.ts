/**
 * The keys of the API server: what seals, and what derives. Derived ones come from a root in the database which the master key
 * only wraps, so that they are the same on every replica, whichever master key it holds while that one is changed.
 */
import { hkdfSync } from 'node:crypto'
import { createSealer, type MasterKeys, type Sealer } from '../lib/credentials/seal.ts'
import { untilBack } from '../runtime/postgres/until-back.ts'
import type { Database } from './store/database.ts'
import { openDerivationRoot, proveSealer, rewrapSealedRows } from './store/sealed-rows.ts'

/** Never logged. */
export interface ServerKeys {
  readonly sealer: Sealer
  /** Derives the tokens that follow others in a session. */
  readonly rotationKey: Buffer
  /** Makes digests of codes that are too short for plain ones. */
  readonly codeKey: Buffer
  /** Half of what seals replies that hold a secret; the other half is the client's Idempotency-Key. */
  readonly replyKey: Buffer
  /** Makes digests of what was asked for with an Idempotency-Key: passwords and secrets of clients are in there. */
  readonly contentKey: Buffer
}

const KEY_BYTES = 32

const derived = (root: Buffer, what: string): Buffer => Buffer.from(hkdfSync('sha256', root, '', what, KEY_BYTES))

export interface OpenKeysOptions {
  /** What an earlier key sealed is sealed anew first: where no other server is, which might not know the new key. */
  readonly rewrap: boolean
  /** How long it waits for a database that is away. */
  readonly patienceMs: number
}

/** @throws SealError before anything is written when the master key is not the one that sealed what is there */
export const openServerKeys = async (
  masterKeys: MasterKeys,
  database: Database,
  { rewrap, patienceMs }: OpenKeysOptions,
): Promise<ServerKeys> => {
  const sealer = createSealer(masterKeys)
  await untilBack(() => proveSealer(database, sealer), patienceMs)
  if (rewrap) await rewrapSealedRows(database, sealer)
  const root = await untilBack(() => openDerivationRoot(database, sealer), patienceMs)
  return {
    sealer,
    rotationKey: derived(root, 'svc session rotation'),
    codeKey: derived(root, 'svc sign-in codes'),
    replyKey: derived(root, 'svc idempotent replies'),
    contentKey: derived(root, 'svc contents of requests'),
  }
}
