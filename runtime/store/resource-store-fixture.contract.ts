import assert from 'node:assert/strict'
import type { Resource } from '../../lib/model/resource.ts'
import type { ResourceStore } from './resource-store.ts'
import { isStoreError, type StoreErrorReason } from './store-error.ts'

/** An adapter under test, and what only its test file can do. */
export interface ResourceStoreFixture {
  /** A client of this name; all clients of a fixture see the same resources. */
  connect(clientName: string): Promise<ResourceStore>
  /** A namespace that exists and that nothing else uses. */
  namespace(): Promise<string>
  /** Makes every version up to now too old to watch from. */
  expireVersions(): Promise<void>
  /** A quiet watch that was asked for bookmarks gets one within this time. */
  readonly bookmarkWithinMs: number
  close(): Promise<void>
}

export const rejectsWith = async (promise: Promise<unknown>, reason: StoreErrorReason): Promise<void> =>
  assert.rejects(promise, (error: unknown) => {
    assert.ok(isStoreError(error), `expected a StoreError, got ${String(error)}`)
    assert.equal(error.reason, reason, error.message)
    return true
  })

/** Preconditions on the uid alone. */
export const uidOf = ({ metadata: { uid } }: Resource): { uid: string } => ({ uid })
