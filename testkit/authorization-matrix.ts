/**
 * Who may call what, written out by hand beside the policy table: each call is one line, so that a slip in the table, in the
 * router or in a guard shows as a cell that differs.
 */
import type { ErrorCode } from '../lib/errors/codes.ts'
import type { OperationId } from './api-client.ts'

/** What a cell says: yes, or the code of the refusal. */
export const LETTERS = {
  y: 'yes',
  n: 'forbidden',
  s: 'insufficient_scope',
  c: 'credential_not_allowed',
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

/** undefined: nobody is asked. The second word is what scopes are judged by. */
const LINES: Readonly<Record<OperationId, readonly [cells: string, about: About] | undefined>> = {
  getHealth: undefined,
  getReadiness: undefined,
  listTokens: ['yyyyy ccc ccc y yy', 'self'],
  createToken: ['yyyyy ccc ccc y yy', 'self'],
  revokeToken: ['yyyyy ccc yyy y yy', 'self'], // an agent’s own, which is what tests aim it at
  listTokenEvents: ['yyyyy ccc ccc y yy', 'self'],
  signIn: undefined,
  requestMagicLink: undefined,
  requestPasswordReset: undefined,
  previewMagicLink: undefined,
  verifyMagicLink: undefined,
  previewInvitation: undefined,
  acceptInvitation: undefined, // which looks at a session: invitations.test.ts
  startSso: undefined,
  finishSso: undefined,
  signOut: ['ccccc ccc ccc y yy', 'self'],
  getSession: ['ccccc ccc ccc y yy', 'self'],
  listSessions: ['ccccc ccc ccc y yy', 'self'],
  revokeSession: ['ccccc ccc ccc y yy', 'self'],
  revokeOtherSessions: ['ccccc ccc ccc y yy', 'self'],
  signInMfa: undefined,
  getSetup: undefined,
  setUp: undefined,
  getMfa: ['ccccc ccc ccc y cc', 'self'],
  beginTotp: ['ccccc ccc ccc y cc', 'self'],
  confirmTotp: ['ccccc ccc ccc y cc', 'self'],
  removeTotp: ['ccccc ccc ccc y cc', 'self'],
  renewRecoveryCodes: ['ccccc ccc ccc y cc', 'self'],
  changePassword: ['ccccc ccc ccc y cc', 'self'],
  issuePasswordReset: ['ccccc ccc ccc y nn', 'self'], // the session is an operator’s; others are in passwords.test.ts
  previewPasswordReset: undefined,
  completePasswordReset: undefined,
  listLoginEvents: ['ccccc ccc ccc y nn', 'self'],
  requestDeviceCode: undefined,
  pollDeviceToken: undefined,
  getDeviceRequest: ['ccccc ccc ccc y yy', 'self'],
  approveDevice: ['ccccc ccc ccc y yy', 'self'],
  denyDevice: ['ccccc ccc ccc y yy', 'self'],
  listOrganizations: ['yyyyy yyy yyy y yy', 'self'],
  putOrganization: ['nnyyy ccc ccc y y-', 'organization'], // a stranger may create one; the command judges that
  getOrganization: ['yyyy- yyy yyy y y-', 'organization'],
  listMembers: ['yyyy- yyy yyy y y-', 'organization'],
  putMember: ['nnyy- ccc ccc y y-', 'organization'],
  removeMember: ['nnyy- ccc ccc y y-', 'organization'],
  getSso: ['nnyy- ccc ccc y y-', 'organization'],
  putSso: ['nnyy- ccc ccc y y-', 'organization'],
  deleteSso: ['nnyy- ccc ccc y y-', 'organization'],
  listInvitations: ['nnyy- ccc ccc y y-', 'organization'],
  createInvitation: ['nnyy- ccc ccc y y-', 'organization'],
  revokeInvitation: ['nnyy- ccc ccc y y-', 'organization'],
  listApiKeys: ['nnyy- ssy ccc y y-', 'organization'],
  createApiKey: ['nnyy- ccc ccc y y-', 'organization'],
  revokeApiKey: ['nnyy- ccc ccc y y-', 'organization'],
  listProjects: ['yyyy- yyy yyy y y-', 'organization'],
  putProject: ['nyyy- syy syy y y-', 'project'],
  getProject: ['yyyy- yyy yyy y y-', 'project'],
  deleteProject: ['nnyy- ssy ssy y y-', 'project'],
  createEnvironment: ['nyyy- syy syy y y-', 'environment'],
  listEnvironments: ['yyyy- yyy yyy y y-', 'organization'], // a project’s own with project_id
  getEnvironment: ['yyyy- yyy yyy y y-', 'environment'],
  updateEnvironment: ['nyyy- syy syy y y-', 'environment'],
  suspendEnvironment: ['nyyy- syy syy y y-', 'environment'],
  resumeEnvironment: ['nyyy- syy syy y y-', 'environment'],
  rotateCredentials: ['nyyy- syy syy y y-', 'environment'],
  deleteEnvironment: ['nyyy- syy syy y y-', 'environment'],
  renewEnvironment: ['nyyy- syy syy y y-', 'environment'],
  getConnection: ['nyyy- syy syy y y-', 'environment'],
  getUsage: ['yyyy- yyy yyy y y-', 'environment'],
  getOperation: ['yyyy- yyy yyy y y-', 'environment'],
  listOperations: ['yyyy- yyy yyy y y-', 'environment'],
  listAuditEvents: ['nnyy- ssy ssy y y-', 'organization'],
  verifyAuditEvents: ['nnyy- ssy ssy y y-', 'organization'],
}

/** What a call is about: a scope has to hold it. */
export type About = 'self' | 'organization' | 'project' | 'environment'

export interface MatrixLine {
  readonly operationId: OperationId
  readonly verdicts: Readonly<Record<Column, Verdict>>
  readonly about: About
}

/** A line for every call that needs a credential. */
export const MATRIX: readonly MatrixLine[] = Object.entries(LINES).flatMap(([operationId, line]) => {
  if (line === undefined) return []
  const [cells, about] = line
  const letters = cells.replaceAll(' ', '')
  const verdicts = Object.fromEntries(
    COLUMNS.map((column, at) => [column, LETTERS[letters.charAt(at) as keyof typeof LETTERS]]),
  ) as Record<Column, Verdict>
  return [{ operationId: operationId as OperationId, verdicts, about }]
})

/** Scopes of an agent’s token, and the narrowest calls that each reaches, with an admin’s level. */
export const REACHES = {
  'org:ORG:admin': ['organization', 'project', 'environment'],
  'project:ORG/PROJECT:admin': ['project', 'environment'],
  'env:ORG/PROJECT/ENV:admin': ['environment'],
  'project:ORG/elsewhere:admin': [],
  'env:ORG/PROJECT/elsewhere:admin': [],
} as const satisfies Record<string, readonly About[]>
