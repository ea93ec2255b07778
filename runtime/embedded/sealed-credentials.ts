/**
 * The Credentials port over a sealed table: one row an environment, keyed by uid. The master key is never in the database,
 * and a canary row proves it before anything is written, for a second key could open nothing that the first one sealed.
 */
import { createSealer, type MasterKeys, SealError, type Sealer, type SealPlace } from '../../lib/credentials/seal.ts'
import type { CredentialOwner, CredentialSet, Credentials } from '../credentials/credentials.ts'
import { StoreError } from '../store/store-error.ts'
import { CANARY, CANARY_TEXT } from './seal-canary.ts'
import { StorePool } from './store-pool.ts'

export interface SealedCredentialsOptions {
  /** The database of the embedded store, migrated. */
  readonly url: string
  /** Shown in pg_stat_activity. */
  readonly clientName: string
  readonly masterKeys: MasterKeys
}

interface CredentialRow {
  readonly version: string
  readonly sealed: string
}

const MAX_CONNECTIONS = 2

const placeOf = (uid: string, version: string): SealPlace => ({
  table: 'credentials',
  column: 'sealed',
  rowId: uid,
  version: BigInt(version),
})

export class SealedCredentials implements Credentials {
  readonly #pool: StorePool
  readonly #sealer: Sealer

  private constructor(pool: StorePool, sealer: Sealer) {
    this.#pool = pool
    this.#sealer = sealer
  }

  /**
   * Connects, proves the master key, and rewraps what a previous master key sealed.
   * @throws SealError when a key is too short, or is not the one that sealed what is there; StoreError `Unavailable`
   */
  static async open({ url, clientName, masterKeys }: SealedCredentialsOptions): Promise<SealedCredentials> {
    const sealer = createSealer(masterKeys)
    const pool = new StorePool({ url, applicationName: clientName, maxConnections: MAX_CONNECTIONS })
    const credentials = new SealedCredentials(pool, sealer)
    try {
      await credentials.#proveKey()
      await credentials.#rewrap()
    } catch (error) {
      await pool.end()
      throw error
    }
    return credentials
  }

  async read({ uid }: CredentialOwner): Promise<CredentialSet | undefined> {
    const [row] = await this.#rows(uid)
    return row === undefined ? undefined : parseSet(this.#sealer.open(placeOf(uid, row.version), row.sealed))
  }

  async write(owner: CredentialOwner, credentials: CredentialSet): Promise<void> {
    const { uid, namespace, name } = owner
    const { app, ops, rotation, next } = credentials
    const text = JSON.stringify({ app, ops, rotation, next })
    // The version is part of the seal, so it has to be known first; whoever comes in between makes us look again.
    for (;;) {
      const version = String(BigInt((await this.#rows(uid))[0]?.version ?? 0) + 1n)
      const sealed = this.#sealer.seal(placeOf(uid, version), text)
      const rows = await this.#pool.query({
        name: 'write-credentials',
        text: `insert into credentials as kept (uid, namespace, name, version, kid, sealed) values ($1, $2, $3, $4, $5, $6)
               on conflict (uid) do update set namespace = $2, name = $3, version = $4, kid = $5, sealed = $6, updated_at = now()
                 where kept.version = $4 - 1
               returning uid`,
        values: [uid, namespace, name, version, this.#sealer.kid, sealed],
      })
      if (rows.length > 0) return
    }
  }

  /** What is kept is what is read. */
  async isPublished(): Promise<boolean> {
    return true
  }

  async delete({ uid }: CredentialOwner): Promise<void> {
    await this.#pool.query({
      name: 'delete-credentials',
      text: 'delete from credentials where uid = $1',
      values: [uid],
    })
  }

  /** Waits for calls under way, then closes the connections. */
  async close(): Promise<void> {
    await this.#pool.end()
  }

  async #rows(uid: string): Promise<CredentialRow[]> {
    return this.#pool.query<CredentialRow>({
      name: 'read-credentials',
      text: 'select version, sealed from credentials where uid = $1',
      values: [uid],
    })
  }

  async #proveKey(): Promise<void> {
    const [row] = await this.#pool.query<{ sealed: string }>({
      name: 'prove-key',
      // Two first starts at once: the second insert finds the first one's row, and the update lets it be read.
      text: `insert into seal_canary as canary (sealed) values ($1)
             on conflict (one_row) do update set sealed = canary.sealed returning sealed`,
      values: [this.#sealer.seal(CANARY, CANARY_TEXT)],
    })
    if (row === undefined) throw new StoreError('Unavailable', 'The canary row cannot be read')
    let opened: string
    try {
      opened = this.#sealer.open(CANARY, row.sealed)
    } catch (error) {
      throw new SealError(
        'The master key is not the one that sealed the stored credentials: start with the right one (or name it as a previous one)',
        error,
      )
    }
    if (opened !== CANARY_TEXT) throw new SealError('The canary row was changed')
    if (this.#isCurrent(row.sealed)) return
    await this.#pool.query({
      name: 'rewrap-canary',
      text: 'update seal_canary set sealed = $1 where sealed = $2',
      values: [this.#sealer.rewrap(CANARY, row.sealed), row.sealed],
    })
  }

  async #rewrap(): Promise<void> {
    const rows = await this.#pool.query<CredentialRow & { uid: string }>({
      name: 'find-stragglers',
      text: 'select uid, version, sealed from credentials where kid <> $1',
      values: [this.#sealer.kid],
    })
    for (const { uid, version, sealed } of rows)
      await this.#pool.query({
        name: 'rewrap-credentials',
        text: 'update credentials set kid = $1, sealed = $2 where uid = $3 and sealed = $4',
        values: [this.#sealer.kid, this.#sealer.rewrap(placeOf(uid, version), sealed), uid, sealed],
      })
  }

  #isCurrent(sealed: string): boolean {
    return sealed.split('.')[1] === this.#sealer.kid
  }
}

const parseSet = (text: string): CredentialSet => JSON.parse(text) as CredentialSet
