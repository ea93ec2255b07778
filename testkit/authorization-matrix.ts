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

/** The callers of a line, in its order. Agents’ tokens are an owner’s, with a bare level as their scope. */
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
] as const
export type Column = (typeof COLUMNS)[number]

/** undefined: nobody is asked. The second word is what scopes are judged by. */
const LINES: Readonly<Record<OperationId, readonly [cells: string, about: About] | undefined>> = {
  getHealth: undefined,
  getReadiness: undefined,
  listTokens: ['yyyyy ccc ccc', 'self'],
  createToken: ['yyyyy ccc ccc', 'self'],
  revokeToken: ['yyyyy ccc yyy', 'self'], // an agent’s own, which is what tests aim it at
  listTokenEvents: ['yyyyy ccc ccc', 'self'],
  listOrganizations: ['yyyyy yyy yyy', 'self'],
  putOrganization: ['nnyyy ccc ccc', 'organization'], // a stranger may create one; the command judges that
  getOrganization: ['yyyy- yyy yyy', 'organization'],
  listMembers: ['yyyy- yyy yyy', 'organization'],
  putMember: ['nnyy- ccc ccc', 'organization'],
  removeMember: ['nnyy- ccc ccc', 'organization'],
  listApiKeys: ['nnyy- ssy ccc', 'organization'],
  createApiKey: ['nnyy- ccc ccc', 'organization'],
  revokeApiKey: ['nnyy- ccc ccc', 'organization'],
  listProjects: ['yyyy- yyy yyy', 'organization'],
  putProject: ['nyyy- syy syy', 'project'],
  getProject: ['yyyy- yyy yyy', 'project'],
  deleteProject: ['nnyy- ssy ssy', 'project'],
  createEnvironment: ['nyyy- syy syy', 'environment'],
  listEnvironments: ['yyyy- yyy yyy', 'organization'], // a project’s own with project_id
  getEnvironment: ['yyyy- yyy yyy', 'environment'],
  updateEnvironment: ['nyyy- syy syy', 'environment'],
  suspendEnvironment: ['nyyy- syy syy', 'environment'],
  resumeEnvironment: ['nyyy- syy syy', 'environment'],
  rotateCredentials: ['nyyy- syy syy', 'environment'],
  deleteEnvironment: ['nyyy- syy syy', 'environment'],
  renewEnvironment: ['nyyy- syy syy', 'environment'],
  getConnection: ['nyyy- syy syy', 'environment'],
  getUsage: ['yyyy- yyy yyy', 'environment'],
  getOperation: ['yyyy- yyy yyy', 'environment'],
  listOperations: ['yyyy- yyy yyy', 'environment'],
  listAuditEvents: ['nnyy- ssy ssy', 'organization'],
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
