import type { Wanted } from './defaults.ts'
import type { Limits } from './limits.ts'

/** When the sweep takes an environment, in epoch milliseconds; undefined: never. */
export const sweptAtMs = (wanted: Wanted, limits: Limits): number | undefined =>
  wanted.expiresAtMs === undefined ? undefined : wanted.expiresAtMs + limits.expiryGraceMs

/** Whether the time of the sweep has come. */
export const hasExpired = (wanted: Wanted, nowMs: number, limits: Limits): boolean => {
  const at = sweptAtMs(wanted, limits)
  return at !== undefined && nowMs >= at
}

/** The expiry as a status shows it. */
export const expiresAtText = (wanted: Wanted): string | undefined =>
  wanted.expiresAtMs === undefined ? undefined : new Date(wanted.expiresAtMs).toISOString()
