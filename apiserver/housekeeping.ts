/** What has to be done now and then, by any replica, at no particular moment. */
import type { Log } from '../runtime/log/log.ts'
import { auditHeads } from './audit-heads.ts'
import { sweepApiKeys } from './store/api-keys.ts'
import type { Database } from './store/database.ts'
import { sweepKeys } from './store/idempotency.ts'
import { sweepAttempts } from './store/login/attempts.ts'
import { sweepDeviceRequests } from './store/login/device-requests.ts'
import { sweepInvitations } from './store/login/invitations.ts'
import { sweepMagicLinks } from './store/login/magic-links.ts'
import { sweepResets } from './store/login/password-resets.ts'
import { sweepFactors } from './store/login/second-factors.ts'
import { type SessionLife, sweepSessions } from './store/login/sessions.ts'
import { sweepFailures } from './store/login/sign-in-failures.ts'
import { sweepSsoFlows } from './store/login/sso-flows.ts'
import { sweepLetters } from './store/mail-outbox.ts'
import { sweepTokens } from './store/tokens.ts'

const EVERY_MS = 60_000

export interface Housekeeping {
  /** Does all of it now, after what is under way. */
  round(): Promise<void>
  stop(): Promise<void>
}

/**
 * Forgets what ran out, credentials of every kind and what was counted; and says the heads of the audit log.
 * Survives its errors and says them.
 */
export const startHousekeeping = (
  database: Database,
  login: { readonly sessions: SessionLife },
  log: Log,
): Housekeeping => {
  const heads = auditHeads(database, log)
  const chores: readonly (readonly [what: string, chore: () => Promise<unknown>])[] = [
    ['forget old idempotency keys', () => sweepKeys(database)],
    ['forget old tokens', () => sweepTokens(database)],
    ['forget old API keys', () => sweepApiKeys(database)],
    ['forget old sessions', () => sweepSessions(database, login.sessions)],
    ['forget old attempts', () => sweepAttempts(database)],
    ['forget old reset links', () => sweepResets(database)],
    ['forget old second factors', () => sweepFactors(database)],
    ['forget old failed sign-ins', () => sweepFailures(database)],
    ['forget old email links', () => sweepMagicLinks(database)],
    ['forget old invitations', () => sweepInvitations(database)],
    ['forget old device requests', () => sweepDeviceRequests(database)],
    ['forget old sign-ins at identity providers', () => sweepSsoFlows(database)],
    ['forget old letters', () => sweepLetters(database)],
    ['say the heads of the audit log', () => heads.say()],
  ]
  let running: Promise<void> = Promise.resolve()
  const doAll = async (): Promise<void> => {
    for (const [what, chore] of chores)
      try {
        await chore()
      } catch (error) {
        log.warn({ err: error }, `Cannot ${what}; the next round will`)
      }
  }
  const round = (): Promise<void> => (running = running.then(doAll))
  const timer = setInterval(() => void round(), EVERY_MS).unref()
  return {
    round,
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}
