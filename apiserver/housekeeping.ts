/** What has to be done now and then, by any replica, at no particular moment. */
import type { Log } from '../runtime/log/log.ts'
import type { LoginSettings } from './commands/login/dependencies.ts'
import { sweepAttempts } from './store/attempts.ts'
import type { Database } from './store/database.ts'
import { sweepKeys } from './store/idempotency.ts'
import { sweepInvitations } from './store/invitations.ts'
import { sweepMagicLinks } from './store/magic-links.ts'
import { sweepLetters } from './store/mail-outbox.ts'
import { sweepResets } from './store/password-resets.ts'
import { sweepFactors } from './store/second-factors.ts'
import { sweepSessions } from './store/sessions.ts'
import { sweepFailures } from './store/sign-in-failures.ts'

const EVERY_MS = 60_000

export interface Housekeeping {
  stop(): Promise<void>
}

/** Forgets what ran out: idempotency keys with their secrets, sessions, counted attempts. Survives its errors and says them. */
export const startHousekeeping = (database: Database, login: LoginSettings, log: Log): Housekeeping => {
  const chores: readonly (readonly [what: string, sweep: () => Promise<unknown>])[] = [
    ['idempotency keys', () => sweepKeys(database)],
    ['sessions', () => sweepSessions(database, login.sessions)],
    ['attempts', () => sweepAttempts(database)],
    ['reset links', () => sweepResets(database)],
    ['second factors', () => sweepFactors(database)],
    ['failed sign-ins', () => sweepFailures(database)],
    ['email links', () => sweepMagicLinks(database)],
    ['invitations', () => sweepInvitations(database)],
    ['letters', () => sweepLetters(database)],
  ]
  let running: Promise<void> = Promise.resolve()
  const sweepAll = async (): Promise<void> => {
    for (const [what, sweep] of chores)
      try {
        await sweep()
      } catch (error) {
        log.warn({ err: error, what }, 'Cannot forget what ran out')
      }
  }
  const timer = setInterval(() => {
    running = running.then(sweepAll)
  }, EVERY_MS).unref()
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}
