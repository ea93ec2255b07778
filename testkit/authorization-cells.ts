/** Who is asked about beside the columns of the matrix, and how many cells that makes: every route, and every kind of caller. */
import { policyRowOf } from '../apiserver/auth/policy.ts'
import type { Route } from '../apiserver/contract/route.ts'
import { ROUTES } from '../apiserver/contract/routes.ts'
import type { ErrorCode } from '../lib/errors/codes.ts'
import { COLUMNS, MATRIX, type MatrixLine, OIDC_COLUMNS, SCOPES, type Verdict } from './authorization-matrix.ts'

/** Credentials that are good for nothing, and what each call says to them. */
export const USELESS = {
  nobody: 'unauthenticated',
  'an expired token': 'invalid_token',
  'a revoked token': 'invalid_token',
  'an agent’s expired token': 'invalid_token',
  'an agent’s revoked token': 'invalid_token',
  'a revoked key': 'invalid_token',
  'a token of somebody disabled': 'invalid_token',
  'a session of somebody disabled': 'invalid_token',
  'a session that was signed out': 'invalid_token',
  'a session that was idle for too long': 'invalid_token',
  'a session that lived for too long': 'invalid_token',
} as const satisfies Record<string, ErrorCode>
export type Useless = keyof typeof USELESS

/** Sessions of people who are no owners: they have their role, and no more. */
export const SESSIONS = ['viewer', 'developer', 'admin', 'stranger'] as const
/** Sessions of people whom an organization’s provider vouches for. */
export const BY_SSO = ['sso', 'sso:elsewhere'] as const
/** Tokens and keys of other organizations. */
export const FOREIGN = 3

/** What is said to the session of somebody; undefined: what a session of any person may do, which the matrix has. */
export const saidToSession = (line: MatrixLine, who: (typeof SESSIONS)[number]): Verdict | undefined => {
  if (policyRowOf(ROUTES[line.operationId]).role === 'operator') return 'forbidden'
  const verdict = line.verdicts[who]
  return line.about === 'self' || verdict === 'credential_not_allowed' ? undefined : verdict
}

/** A stranger who may make an organization is told so; what they cannot do is in every-route.test.ts. */
export const isElsewhere = (operationId: string, who: string): boolean =>
  operationId === 'putOrganization' && who === 'stranger'

/** How many cells a line has: one for each caller that is asked about. */
const cellsOf = (line: MatrixLine): number => {
  const { operationId, verdicts, about } = line
  const columns = COLUMNS.filter(column => !isElsewhere(operationId, column)).length
  const sessions = SESSIONS.filter(who => !isElsewhere(operationId, who) && saidToSession(line, who) !== undefined)
  const isScoped = about !== 'self' && verdicts['agent:admin'] !== 'credential_not_allowed'
  const scopes = isScoped ? SCOPES.length + FOREIGN + (verdicts.viewer === 'yes' ? 0 : 1) : 0
  return columns + sessions.length + Object.keys(USELESS).length + scopes
}
/** What needs no credential: nobody is asked, and where a session may be shown everybody. */
export const OPEN = Object.values<Route>(ROUTES).filter(route => policyRowOf(route).role === 'public')
const CELLS_OF_OPEN = COLUMNS.length + Object.keys(USELESS).length
/** Where a session may be shown, nobody is asked beside those who show something. */
const cellsOfOpen = (route: Route): number => CELLS_OF_OPEN + (policyRowOf(route).credentials.length === 0 ? 0 : 1)
/** All of them. */
export const CELLS =
  MATRIX.reduce((sum, line) => sum + cellsOf(line), 0) + OPEN.reduce((sum, route) => sum + cellsOfOpen(route), 0)
/** Those of access tokens, which have a server and a test of their own. */
export const OIDC_CELLS = OIDC_COLUMNS.length * (MATRIX.length + OPEN.length)
