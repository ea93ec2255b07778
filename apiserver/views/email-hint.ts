/** An address as whoever has a link to it may see it: enough to know it again. */
export const emailHint = (email: string): string => email.replace(/^(.).*@/, '$1***@')
