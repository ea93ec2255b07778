/** Who says who people are. */
export const AUTH_MODES = ['builtin', 'oidc'] as const
export type AuthMode = (typeof AUTH_MODES)[number]
