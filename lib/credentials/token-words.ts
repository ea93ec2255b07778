/**
 * How secrets begin that callers hold: tokens with `svc_<word>_`, API keys with `svck_`. The one list of them: tokens are made
 * of its words alone, and the log takes out what begins with one, so that neither can know a kind that the other does not.
 */

/** personal, agent, session; then those that are spent once: sign-in link, invitation, reset, setup, second step, device, single sign-on. */
export const TOKEN_WORDS = ['pat', 'agt', 'ses', 'mgl', 'inv', 'rst', 'setup', 'mfa', 'dev', 'sso'] as const
export type TokenWord = (typeof TOKEN_WORDS)[number]

/** The first characters of a kind of token. */
export const tokenStart = (word: TokenWord): string => `svc_${word}_`

/** The first characters of an API key. */
export const API_KEY_START = 'svck_'
