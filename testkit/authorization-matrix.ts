/**
 * Who may call what, written out by hand beside the policy table: each call is one line, so that a slip in the table, in the
 * router or in a guard shows as a cell that differs.
 */
import type { ErrorCode } from '../lib/errors/codes.ts'
import type { Level } from '../lib/model/scope.ts'
import type { OperationId } from './api-client.ts'

/** What a cell says: yes, or the code of the refusal. */
export const LETTERS = {
  y: 'yes',
  n: 'forbidden',
  s: 'insufficient_scope',
  c: 'credential_not_allowed',
  d: 'builtin_login_disabled',
  '-': 'organization_not_found',
} as const satisfies Record<string, 'yes' | ErrorCode>
export type Verdict = (typeof LETTERS)[keyof typeof LETTERS]

/**
 * The callers of a line, in its order. Agents’ tokens and the session are an owner’s; a bare level is an agent’s scope. The sessions
 * of single sign-on are of an owner of this organization, and of one of another.
 */
export const COLUMNS = [
  'viewer',
  'developer',
  'admin',
  'owner',
  'stranger',
  'key:read',
  'key:deploy',
  'key:admin',
  'agent:read',
  'agent:deploy',
  'agent:admin',
  'session',
  'sso',
  'sso:elsewhere',
] as const
export type Column = (typeof COLUMNS)[number]

/** More of them: access tokens of people of an identity provider, at a server that takes those. They are of no operators. */
export const OIDC_COLUMNS = ['oidc:viewer', 'oidc:developer', 'oidc:admin', 'oidc:owner', 'oidc:stranger'] as const
export type OidcColumn = (typeof OIDC_COLUMNS)[number]

/** undefined: nobody is asked. The second word is what scopes are judged by. */
const LINES: Readonly<Record<OperationId, readonly [cells: string, about: About] | undefined>> = {
  getHealth: undefined,
  getReadiness: undefined,
  listTokens: ['yyyyy ccc ccc y yy yyyyy', 'self'],
  createToken: ['yyyyy ccc ccc y yy yyyyy', 'self'],
  revokeToken: ['yyyyy ccc yyy y yy yyyyy', 'self'], // an agent’s own, which is what tests aim it at
  listTokenEvents: ['yyyyy ccc ccc y yy yyyyy', 'self'],
  signIn: undefined,
  requestMagicLink: undefined,
  requestPasswordReset: undefined,
  previewMagicLink: undefined,
  verifyMagicLink: undefined,
  previewInvitation: undefined,
  acceptInvitation: undefined, // which looks at a session: invitations.test.ts
  startSso: undefined,
  finishSso: undefined,
  signOut: ['ccccc ccc ccc y yy ccccc', 'self'],
  getSession: ['ccccc ccc ccc y yy ccccc', 'self'],
  listSessions: ['ccccc ccc ccc y yy ccccc', 'self'],
  revokeSession: ['ccccc ccc ccc y yy ccccc', 'self'],
  revokeOtherSessions: ['ccccc ccc ccc y yy ccccc', 'self'],
  signInMfa: undefined,
  getSetup: undefined,
  setUp: undefined,
  getMfa: ['ccccc ccc ccc y cc ccccc', 'self'],
  beginTotp: ['ccccc ccc ccc y cc ddddd', 'self'],
  confirmTotp: ['ccccc ccc ccc y cc ddddd', 'self'],
  removeTotp: ['ccccc ccc ccc y cc ddddd', 'self'],
  renewRecoveryCodes: ['ccccc ccc ccc y cc ddddd', 'self'],
  changePassword: ['ccccc ccc ccc y cc ddddd', 'self'],
  issuePasswordReset: ['ccccc ccc ccc y nn ddddd', 'self'], // the session is an operator’s; others are in passwords.test.ts
  previewPasswordReset: undefined,
  completePasswordReset: undefined,
  listLoginEvents: ['ccccc ccc ccc y nn nnnnn', 'self'],
  requestDeviceCode: undefined,
  pollDeviceToken: undefined,
  getDeviceRequest: ['ccccc ccc ccc y yy ccccc', 'self'],
  approveDevice: ['ccccc ccc ccc y yy ccccc', 'self'],
  denyDevice: ['ccccc ccc ccc y yy ccccc', 'self'],
  listOrganizations: ['yyyyy yyy yyy y yy yyyyy', 'self'],
  putOrganization: ['nnyyy ccc ccc y y- nnyyn', 'organization'], // a stranger may create one; the command judges that
  getOrganization: ['yyyy- yyy yyy y y- yyyy-', 'organization'],
  listMembers: ['yyyy- yyy yyy y y- yyyy-', 'organization'],
  putMember: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  removeMember: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  getSso: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  putSso: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  deleteSso: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  listInvitations: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  createInvitation: ['nnyy- ccc ccc y y- ddddd', 'organization'],
  revokeInvitation: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  listApiKeys: ['nnyy- ssy ccc y y- nnyy-', 'organization'],
  createApiKey: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  revokeApiKey: ['nnyy- ccc ccc y y- nnyy-', 'organization'],
  listProjects: ['yyyy- yyy yyy y y- yyyy-', 'organization'],
  putProject: ['nyyy- syy syy y y- nyyy-', 'project'],
  getProject: ['yyyy- yyy yyy y y- yyyy-', 'project'],
  deleteProject: ['nnyy- ssy ssy y y- nnyy-', 'project'],
  createEnvironment: ['nyyy- syy syy y y- nyyy-', 'environment'],
  listEnvironments: ['yyyy- yyy yyy y y- yyyy-', 'organization'], // a project’s own with project_id
  getEnvironment: ['yyyy- yyy yyy y y- yyyy-', 'environment'],
  updateEnvironment: ['nyyy- syy syy y y- nyyy-', 'environment'],
  suspendEnvironment: ['nyyy- syy syy y y- nyyy-', 'environment'],
  resumeEnvironment: ['nyyy- syy syy y y- nyyy-', 'environment'],
  rotateCredentials: ['nyyy- syy syy y y- nyyy-', 'environment'],
  deleteEnvironment: ['nyyy- syy syy y y- nyyy-', 'environment'],
  renewEnvironment: ['nyyy- syy syy y y- nyyy-', 'environment'],
  getConnection: ['nyyy- syy syy y y- nyyy-', 'environment'],
  getUsage: ['yyyy- yyy yyy y y- yyyy-', 'environment'],
  getOperation: ['yyyy- yyy yyy y y- yyyy-', 'environment'],
  listOperations: ['yyyy- yyy yyy y y- yyyy-', 'environment'],
  listAuditEvents: ['nnyy- ssy ssy y y- nnyy-', 'organization'],
  verifyAuditEvents: ['nnyy- ssy ssy y y- nnyy-', 'organization'],
}

/** What a call is about: a scope has to hold it. */
export type About = 'self' | 'organization' | 'project' | 'environment'

export interface MatrixLine {
  readonly operationId: OperationId
  readonly verdicts: Readonly<Record<Column, Verdict>>
  readonly byOidc: Readonly<Record<OidcColumn, Verdict>>
  readonly about: About
}

/** A line for every call that needs a credential. */
export const MATRIX: readonly MatrixLine[] = Object.entries(LINES).flatMap(([operationId, line]) => {
  if (line === undefined) return []
  const [cells, about] = line
  const letters = cells.replaceAll(' ', '')
  const read = <Name extends string>(columns: readonly Name[], from: number): Record<Name, Verdict> =>
    Object.fromEntries(
      columns.map((column, at) => [column, LETTERS[letters.charAt(from + at) as keyof typeof LETTERS]]),
    ) as Record<Name, Verdict>
  const [verdicts, byOidc] = [read(COLUMNS, 0), read(OIDC_COLUMNS, COLUMNS.length)]
  return [{ operationId: operationId as OperationId, verdicts, byOidc, about }]
})

/** Scopes of an agent’s token, and the narrowest calls that each is about; its level is judged as a bare one is. */
export const REACHES = {
  'org:ORG:admin': ['organization', 'project', 'environment'],
  'project:ORG/PROJECT:admin': ['project', 'environment'],
  'project:ORG/PROJECT:deploy': ['project', 'environment'],
  'project:ORG/PROJECT:read': ['project', 'environment'],
  'env:ORG/PROJECT/ENV:admin': ['environment'],
  'env:ORG/PROJECT/ENV:deploy': ['environment'],
  'env:ORG/PROJECT/ENV:read': ['environment'],
  'project:ORG/elsewhere:admin': [],
  'env:ORG/PROJECT/elsewhere:admin': [],
} as const satisfies Record<string, readonly About[]>
export type ReachingScope = keyof typeof REACHES

/** Whether a scope gives a call: it is about it, and its level does. */
export const doesReach = ({ verdicts, about }: MatrixLine, scope: ReachingScope): boolean => {
  const level = scope.slice(scope.lastIndexOf(':') + 1) as Level
  return (REACHES[scope] as readonly About[]).includes(about) && verdicts[`agent:${level}`] === 'yes'
}

/** The names of REACHES. */
export const SCOPES = Object.keys(REACHES) as readonly ReachingScope[]
