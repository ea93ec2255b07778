/** What an identity provider's answer about a token comes to (RFC 7662). Pure. */

import { isUsableSubject } from '../../../lib/model/subject.ts'

/** Who a token speaks for, there. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
  /** What people call them. */
  readonly name: string
  /** Whether they run this service, by what the token says of them. */
  readonly isOperator: boolean
  /** Epoch seconds; undefined: not told. */
  readonly expiresAt: number | undefined
}

/** A claim that is this value, or a list that holds it. */
export interface ClaimValue {
  /** Of a claim within another one `outer.inner`. */
  readonly name: string
  readonly value: string
}

/** What a token has to be. */
export interface Expected {
  readonly issuer: string
  readonly audience: string
  /** Seconds that clocks may differ. */
  readonly skewSeconds: number
  /** What makes somebody an operator: one of these. */
  readonly operators: readonly ClaimValue[]
}

type Claims = Readonly<Record<string, unknown>>

const secondsOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

const isAccessToken = ({ token_type: type, typ }: Claims): boolean =>
  (type === undefined || (typeof type === 'string' && /^(bearer|access_token)$/i.test(type))) &&
  (typ === undefined || (typeof typ === 'string' && !/^(refresh|id|offline)$/i.test(typ)))

const nameOf = (claims: Claims, subject: string): string => {
  for (const claim of ['name', 'preferred_username', 'username']) {
    const value = claims[claim]
    if (typeof value === 'string' && isUsableSubject(value)) return value
  }
  return subject
}

const ownOf = (claims: unknown, name: string): unknown =>
  typeof claims === 'object' && claims !== null && Object.hasOwn(claims, name) ? (claims as Claims)[name] : undefined

/** As it is called; names of claims may hold dots too. */
const claimOf = (claims: Claims, name: string): unknown =>
  ownOf(claims, name) ?? name.split('.').reduce<unknown>(ownOf, claims)

const has = (claims: Claims, { name, value }: ClaimValue): boolean => {
  const claim = claimOf(claims, name)
  return Array.isArray(claim) ? claim.includes(value) : claim === value
}

/** The first reason why an active token is none for us; undefined: it is one. */
const faultOf = (claims: Claims, expected: Expected, now: number): string | undefined => {
  const { iss, aud, sub, exp, nbf, cnf } = claims
  const { skewSeconds } = expected
  const audiences = Array.isArray(aud) ? aud : [aud]
  if (iss !== undefined && iss !== expected.issuer) return 'another issuer'
  if (!audiences.includes(expected.audience)) return 'another audience'
  if (!isAccessToken(claims)) return 'no access token'
  // Bound to a key that whoever holds the token would have to prove, which a bearer does not.
  if (cnf !== undefined) return 'bound to a key'
  if (exp !== undefined && secondsOf(exp) === undefined) return 'an expiry that is none'
  if ((secondsOf(exp) ?? Number.POSITIVE_INFINITY) + skewSeconds <= now) return 'expired'
  if ((secondsOf(nbf) ?? 0) - skewSeconds > now) return 'not valid yet'
  if (typeof sub !== 'string' || !isUsableSubject(sub)) return 'no subject that can be used'
  return undefined
}

/**
 * Judges an answer about a token that the provider says is active, at a time in epoch seconds.
 * @returns the identity, or in words why the token is none for us
 */
export const judgeIntrospection = (claims: Claims, expected: Expected, now: number): Identity | string => {
  if (claims['active'] !== true) return 'not active'
  const fault = faultOf(claims, expected, now)
  if (fault !== undefined) return fault
  const subject = String(claims['sub'])
  return {
    issuer: expected.issuer,
    subject,
    name: nameOf(claims, subject),
    isOperator: expected.operators.some(each => has(claims, each)),
    expiresAt: secondsOf(claims['exp']),
  }
}
