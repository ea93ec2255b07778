/**
 * How a preview stands to its expiry: pure.
 *
 *   far away -> Expiring -> Expired=False/InGrace -> due: Expired=True/TimeToLiveEnded, and the deletion
 *                        -> Expired=True/Protected, for as long as it is protected
 *
 * The grace is counted from the expiry; but where it cannot be ruled out that the preview was protected since, from the
 * first look that finds it unprotected: whoever lifts a protection can take that back, and is never met by a sweep whose
 * time was over long ago.
 */
import { type Environment, judgedGeneration } from '../../crds/environment.ts'
import { type Claims, fails, holds } from './conditions.ts'
import type { Wanted } from './defaults.ts'
import type { Limits } from './limits.ts'

export interface Expiry {
  readonly claims: Pick<Claims, 'Expiring' | 'Expired'>
  /** While its time is over and nothing protects it: when the sweep takes it, in epoch milliseconds. */
  readonly graceUntilMs: number | undefined
  /** The time of the sweep has come. */
  readonly due: boolean
  /** When it stands differently, if nobody does anything; Infinity: never. */
  readonly changesInMs: number
}

const HOUR_MS = 3_600_000
const WARN_AT_MOST_MS = 24 * HOUR_MS

const EXPIRING = holds('ExpiresSoon', 'This preview expires soon; renew it to keep it')
const PROTECTED = holds(
  'Protected',
  'The time to live of this preview has ended; only its deletion protection keeps it',
)
const IN_GRACE = fails('InGrace', 'The time to live of this preview has ended; it is deleted unless it is protected')

/** How long before its expiry a preview is warned of: a tenth of its hours, a day at most; an hour where none are known. */
const warnMs = (ttlHours: number | undefined): number =>
  ttlHours === undefined ? HOUR_MS : Math.min(WARN_AT_MOST_MS, (ttlHours * HOUR_MS) / 10)

/**
 * Whether the preview has been unprotected ever since the status was judged: no spec came after it, or a single one, so
 * that none in between can have protected it.
 */
const wasNeverProtectedSince = ({ metadata, status }: Environment): boolean =>
  status?.deletionProtection !== true && metadata.generation - judgedGeneration(status) <= 1

const graceUntil = (environment: Environment, expiresAtMs: number, nowMs: number, limits: Limits): number => {
  const noted = Date.parse(environment.status?.graceUntil ?? '')
  const began = wasNeverProtectedSince(environment) ? expiresAtMs : Math.max(expiresAtMs, nowMs)
  const until = began + limits.expiryGraceMs
  return noted > until ? noted : until
}

export const expiryOf = (
  { environment, wanted }: { readonly environment: Environment; readonly wanted: Wanted },
  nowMs: number,
  limits: Limits,
): Expiry => {
  const { expiresAtMs } = wanted
  const stands = (claims: Expiry['claims'], changesInMs = Infinity): Expiry => ({
    claims,
    graceUntilMs: undefined,
    due: false,
    changesInMs,
  })
  if (expiresAtMs === undefined) return stands({})
  const leftMs = expiresAtMs - nowMs
  const quietMs = leftMs - warnMs(environment.spec.ttlHours)
  if (quietMs > 0) return stands({}, quietMs)
  if (leftMs > 0) return stands({ Expiring: EXPIRING }, leftMs)
  if (environment.spec.deletionProtection === true) return stands({ Expired: PROTECTED })
  const graceUntilMs = graceUntil(environment, expiresAtMs, nowMs, limits)
  const due = nowMs >= graceUntilMs
  return { claims: { Expired: IN_GRACE }, graceUntilMs, due, changesInMs: due ? 0 : graceUntilMs - nowMs }
}

/** The expiry as a status shows it. */
export const expiresAtText = (wanted: Wanted): string | undefined =>
  wanted.expiresAtMs === undefined ? undefined : new Date(wanted.expiresAtMs).toISOString()

/** What a status remembers of the spec that it was judged for. Goes together: a grace is worked out from both. */
export interface JudgedSpec {
  readonly observedGeneration: number
  readonly deletionProtection: true | undefined
}

export const judgedSpec = ({ metadata, spec }: Environment): JudgedSpec => ({
  observedGeneration: metadata.generation,
  deletionProtection: spec.deletionProtection === true ? true : undefined,
})

/** The same of a look that judged no expiry: a protection that may have been lifted is remembered for one that does. */
export const seenSpec = (environment: Environment): JudgedSpec => {
  const judged = judgedSpec(environment)
  return wasNeverProtectedSince(environment) ? judged : { ...judged, deletionProtection: true }
}
