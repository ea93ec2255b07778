/**
 * Drops DeletionRecords that nobody fetched in time: where no API server runs, they would pile up for ever. A loop that
 * outlives its errors.
 */
import { Counter, type Registry } from 'prom-client'
import type { DeletionRecord } from '../../crds/deletion-record.ts'
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import { keyOf } from '../../lib/model/resource.ts'
import { type Clock, sleep, systemClock } from '../../runtime/controller/clock.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'

export interface SweepOptions {
  readonly store: ResourceStore
  readonly namespace: string
  readonly keepMs: number
  readonly log: Log
  readonly registry: Registry
  /** Epoch milliseconds. */
  readonly now: () => number
  readonly clock?: Clock
}

const EVERY_MS = 3_600_000

/** Sweeps at once and then every hour. @returns how to stop; resolves once nothing of it runs */
export const startDeletionRecordSweep = (options: SweepOptions): (() => Promise<void>) => {
  const { log, registry, clock = systemClock } = options
  const errors = new Counter({
    name: 'deletion_record_sweep_errors_total',
    help: 'Sweeps of old DeletionRecords that failed',
    registers: [registry],
  })
  const stopping = new AbortController()
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await sweepDeletionRecords(options)
      } catch (error) {
        errors.inc()
        log.warn({ err: error }, 'Old deletion records could not be swept; it is tried again')
      }
      await sleep(clock, EVERY_MS, stopping.signal)
    }
  }
  const running = loop()
  return async () => {
    stopping.abort()
    await running
  }
}

/** @returns how many were dropped */
export const sweepDeletionRecords = async (
  options: Pick<SweepOptions, 'store' | 'namespace' | 'keepMs' | 'now'>,
): Promise<number> => {
  const { store, namespace, keepMs, now } = options
  const { items } = await store.list(deletionRecordType, { namespace })
  const old = items.filter(record => ageMs(record, now()) > keepMs)
  for (const record of old)
    try {
      await store.delete(deletionRecordType, keyOf(record), { uid: record.metadata.uid })
    } catch (error) {
      // The API server took it meanwhile.
      if (!isStoreError(error, 'NotFound', 'Conflict')) throw error
    }
  return old.length
}

/** By the store's clock: what a record says of itself may come from another one. */
const ageMs = ({ metadata }: DeletionRecord, nowMs: number): number => nowMs - Date.parse(metadata.creationTimestamp)
