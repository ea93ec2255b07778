/** How long tokens live, in seconds. */
import type { TokenTtl } from '../contract/account-tokens.ts'

const HOUR_SECONDS = 3600
export const DAY_SECONDS = 24 * HOUR_SECONDS
/** An agent's token whose maker said nothing. */
export const AGENT_SECONDS = 8 * HOUR_SECONDS
/** What the words mean; undefined: for ever. */
export const TTL_SECONDS: Readonly<Record<TokenTtl, number | undefined>> = {
  '30m': HOUR_SECONDS / 2,
  '1h': HOUR_SECONDS,
  '24h': DAY_SECONDS,
  '7d': 7 * DAY_SECONDS,
  '30d': 30 * DAY_SECONDS,
  never: undefined,
}
