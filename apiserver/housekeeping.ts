/** What has to be done now and then, by any replica, at no particular moment. */
import type { Log } from '../runtime/log/log.ts'
import type { Database } from './store/database.ts'
import { sweepKeys } from './store/idempotency.ts'

const EVERY_MS = 60_000

export interface Housekeeping {
  stop(): Promise<void>
}

/** Forgets idempotency keys that ran out, secrets among them. Survives its errors and says them. */
export const startHousekeeping = (database: Database, log: Log): Housekeeping => {
  let running: Promise<void> = Promise.resolve()
  const sweep = async (): Promise<void> => {
    try {
      const swept = await sweepKeys(database)
      if (swept > 0) log.debug({ swept }, 'Idempotency keys that ran out are forgotten')
    } catch (error) {
      log.warn({ err: error }, 'Cannot forget idempotency keys that ran out')
    }
  }
  const timer = setInterval(() => {
    running = running.then(sweep)
  }, EVERY_MS).unref()
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}
