/** What the claims of an identity provider's ID token come to, whose signature, issuer, audience, nonce and times were checked. Pure. */
import { isKeepableSubject } from '../../../lib/model/subject.ts'

/** Whom an organization's provider vouches for. */
export interface VouchedPerson {
  readonly subject: string
  /** What people call them; told by the provider, and proof of nothing. */
  readonly name: string
  /** When they proved to it who they are; undefined: not told. */
  readonly authenticatedAt: Date | undefined
  /** When it wants the session to be over; undefined: not told. */
  readonly endsAt: Date | undefined
}

type Claims = Readonly<Record<string, unknown>>

const dateOf = (value: unknown): Date | undefined => {
  const date = typeof value === 'number' && Number.isFinite(value) ? new Date(value * 1000) : undefined
  return date === undefined || Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999 ? undefined : date
}

const nameOf = (claims: Claims, subject: string): string => {
  for (const claim of ['name', 'preferred_username', 'email']) {
    const value = claims[claim]
    if (typeof value === 'string' && isKeepableSubject(value)) return value
  }
  return subject
}

/**
 * Judges claims at a time. `session_expiry` (OpenID IPSIE) is when the session has to end; `exp` is not: it says how long the ID token
 * may be shown, minutes with most providers.
 * @returns the person, or in words why there is none
 */
export const judgeIdToken = (claims: Claims, now: Date): VouchedPerson | string => {
  const { sub: subject, auth_time: authTime, session_expiry: expiry } = claims
  if (typeof subject !== 'string' || !isKeepableSubject(subject)) return 'no subject that can be used'
  const endsAt = dateOf(expiry)
  if (expiry !== undefined && endsAt === undefined) return 'an end of the session that is none'
  if (endsAt !== undefined && endsAt <= now) return 'a session that is over'
  return { subject, name: nameOf(claims, subject), authenticatedAt: dateOf(authTime), endsAt }
}
