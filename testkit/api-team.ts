/** An organization with one caller of each role, and a stranger: who most API tests are about. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OperationRecord } from '../apiserver/contract/operations.ts'
import type { Phase } from '../lib/model/environment.ts'
import type { ApiCaller, TestApiServer } from './api-server.ts'

export interface ApiTeam {
  readonly owner: ApiCaller
  readonly admin: ApiCaller
  readonly developer: ApiCaller
  readonly viewer: ApiCaller
  /** Owner of another organization, `other`. */
  readonly outsider: ApiCaller
}

export const ORG = 'acme'
export const PROJECT = 'shop'

/** Makes the organization, its project and the callers, through the API. */
export const makeTeam = async (api: TestApiServer): Promise<ApiTeam> => {
  const owner = await api.makeCaller('owner', { isOperator: true })
  const outsider = await api.makeCaller('outsider', { isOperator: true })
  const [admin, developer, viewer] = [
    await api.makeCaller('admin'),
    await api.makeCaller('developer'),
    await api.makeCaller('viewer'),
  ]
  const put = await owner.call('putOrganization', { params: { org: ORG }, body: { name: 'Acme' } })
  assert.equal(put.status, 200, put.text)
  await outsider.call('putOrganization', { params: { org: 'other' }, body: { name: 'Other' } })
  for (const [caller, role] of [
    [admin, 'admin'],
    [developer, 'developer'],
    [viewer, 'viewer'],
  ] as const) {
    const answer = await owner.call('putMember', {
      params: { org: ORG, subject: `user:${caller.userId}` },
      body: { role },
    })
    assert.equal(answer.status, 200, answer.text)
  }
  const project = await owner.call('putProject', {
    params: { org: ORG, project: PROJECT },
    body: { region: 'local', postgres_major: 17 },
  })
  assert.equal(project.status, 200, project.text)
  return { owner, admin, developer, viewer, outsider }
}

/** The parameters of an environment of the team's project. */
export const at = (env: string): { org: string; project: string; env: string } => ({ org: ORG, project: PROJECT, env })

/** A create body. */
export const creation = (environmentId: string, more: Readonly<Record<string, unknown>> = {}) => ({
  organization_id: ORG,
  project_id: PROJECT,
  environment_id: environmentId,
  kind: 'staging',
  ...more,
})

/** Polls an operation to its end. */
export const finished = async (caller: ApiCaller, operationId: string): Promise<OperationRecord> => {
  for (;;) {
    const { body } = await caller.call('getOperation', {
      params: { operation: operationId },
      headers: { 'X-Service-Organization-ID': ORG },
    })
    if (body.state === 'succeeded' || body.state === 'failed') return body
    await sleep(20)
  }
}

/** Creates an environment and waits until its operation is done. */
export const created = async (
  caller: ApiCaller,
  environmentId: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<OperationRecord> => {
  const answer = await caller.call('createEnvironment', { body: creation(environmentId, more) })
  assert.equal(answer.status, 202, answer.text)
  return finished(caller, answer.body.id)
}

/** The phase that a caller sees. */
export const phaseOf = async (caller: ApiCaller, env: string): Promise<Phase> =>
  (await caller.call('getEnvironment', { params: at(env) })).body.phase
