/**
 * The certificate authority of a cluster's environments, as it is kept in a Secret, and what it signs. Pure but for keys and
 * serial numbers.
 *
 *   signing ──(a year before its end)──► a successor is trusted everywhere, and does not sign yet
 *           ──(after a week)───────────► the successor signs; the old one is still trusted
 *           ──(after 120 days)─────────► nothing that the old one signed is good any more: it is dropped
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import {
  type Authority,
  type Identity,
  makeAuthority,
  makeClientIdentity,
  makeServerIdentity,
} from '../../../runtime/tls/certificate.ts'

const DAY_MS = 86_400_000
const AUTHORITY_DAYS = 3650
const RENEW_AUTHORITY_DAYS = 365
const OVERLAP_DAYS = 7
const SERVER_DAYS = 90
const RENEW_SERVER_DAYS = 30
/** Longer than any certificate that an authority signed may still be in use. */
const KEEP_FORMER_DAYS = SERVER_DAYS + 30
const CLIENT_DAYS = 30

/** The common name by which a server knows the operator; pg_ident.conf of the image maps it to the superuser. */
const CLIENT_NAME = 'svc-operator'

/** An authority and the ones before and after it, as PEM. */
export interface AuthorityState {
  readonly signing: Identity
  /** Signs from `from` on; trusted at once. */
  readonly successor?: Identity & { readonly from: string }
  /** Trusted until `until`. */
  readonly former?: { readonly certificate: string; readonly until: string }
  /** When an admin took it instead of one that was lost: servers from before trust only that one, until they are restarted. */
  readonly acceptedAt?: string
}

const after = (now: Date, days: number): string => new Date(now.getTime() + days * DAY_MS).toISOString()

const daysLeft = (certificate: string, now: Date): number =>
  (Date.parse(new X509Certificate(certificate).validTo) - now.getTime()) / DAY_MS

export const newAuthority = (now: Date): AuthorityState => ({
  signing: makeAuthority('svc environments', AUTHORITY_DAYS, now),
})

/** One that takes the place of another by an admin's word, and not by an overlap. */
export const acceptedAuthority = (now: Date): AuthorityState => ({
  ...newAuthority(now),
  acceptedAt: now.toISOString(),
})

/**
 * Whether a state may follow another: they share an authority, so that who trusts the one can be told of the other; or an admin
 * accepted it since.
 */
export const continues = (before: AuthorityState, state: AuthorityState): boolean =>
  certificatesOf(state).includes(before.signing.certificate) ||
  certificatesOf(before).includes(state.signing.certificate) ||
  (state.acceptedAt !== undefined && state.acceptedAt > (before.acceptedAt ?? ''))

/** Whether certificate and key can be read and belong together. */
export const isIdentity = ({ certificate, key }: Identity): boolean => {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}

/** The next state, or the same one where nothing is due. */
export const advanceAuthority = (state: AuthorityState, now: Date): AuthorityState => {
  const { signing, successor, former, ...accepted } = state
  if (successor !== undefined && Date.parse(successor.from) <= now.getTime())
    return {
      signing: { certificate: successor.certificate, key: successor.key },
      former: { certificate: signing.certificate, until: after(now, KEEP_FORMER_DAYS) },
      ...accepted,
    }
  if (former !== undefined && Date.parse(former.until) <= now.getTime())
    return { signing, ...(successor === undefined ? {} : { successor }), ...accepted }
  if (successor === undefined && daysLeft(signing.certificate, now) < RENEW_AUTHORITY_DAYS)
    return {
      ...state,
      successor: { ...makeAuthority('svc environments', AUTHORITY_DAYS, now), from: after(now, OVERLAP_DAYS) },
    }
  return state
}

/** PEM of every authority that is trusted, in an order that does not change by itself. */
export const trusted = (state: AuthorityState): string => certificatesOf(state).join('')

const certificatesOf = ({ signing, successor, former }: AuthorityState): string[] =>
  [signing.certificate, successor?.certificate, former?.certificate].filter(pem => pem !== undefined)

const signer = ({ certificate, key }: Identity): Authority => ({
  certificate: new X509Certificate(certificate),
  key: createPrivateKey(key),
})

export const issueServer = (state: AuthorityState, hosts: readonly string[], now: Date): Identity =>
  makeServerIdentity(signer(state.signing), hosts, SERVER_DAYS, now)

export const issueClient = (state: AuthorityState, now: Date): Identity =>
  makeClientIdentity(signer(state.signing), CLIENT_NAME, CLIENT_DAYS, now)

/** Whether a client's certificate is good for a while longer, and signed by who signs now. */
export const isGoodClient = (state: AuthorityState, { certificate }: Identity, now: Date): boolean =>
  isSignedBy(state, certificate) && daysLeft(certificate, now) > CLIENT_DAYS / 2

/** Whether a server's certificate is good for all its names and for a while longer, signed by who signs now, and fits its key. */
export const isGoodServer = (
  state: AuthorityState,
  identity: Identity,
  hosts: readonly string[],
  now: Date,
): boolean => {
  try {
    const certificate = new X509Certificate(identity.certificate)
    return (
      isSignedBy(state, identity.certificate) &&
      hosts.every(host => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined) &&
      certificate.checkPrivateKey(createPrivateKey(identity.key)) &&
      daysLeft(identity.certificate, now) > RENEW_SERVER_DAYS
    )
  } catch {
    return false
  }
}

const isSignedBy = ({ signing }: AuthorityState, certificate: string): boolean =>
  new X509Certificate(certificate).verify(new X509Certificate(signing.certificate).publicKey)
