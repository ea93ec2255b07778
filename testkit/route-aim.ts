/** A good request for any route, made of its contract, at a target that nobody else uses: whatever it does, it does to that. */
import assert from 'node:assert/strict'
import type { Route } from '../apiserver/contract/route.ts'
import { ROUTES } from '../apiserver/contract/routes.ts'
import { environmentType } from '../crds/environment-type.ts'
import { keyOf } from '../lib/model/resource.ts'
import type { ApiClient, ApiRequest, OperationId } from './api-client.ts'
import type { TestApiServer } from './api-server.ts'
import { type ApiTeam, at, created, finished, ORG, PROJECT } from './api-team.ts'
import { beginTotp, codeOf, enrolTotp } from './second-factor.ts'
import { fromAnywhere, signInAs, TEST_PASSWORD } from './sign-in.ts'

export interface Aim extends ApiRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>> | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** Who has what the routes are aimed at. */
export interface Range {
  readonly api: TestApiServer
  readonly team: ApiTeam
  /** The organization's provider for single sign-on, where a test is about it. */
  readonly sso?: Readonly<Record<string, unknown>>
}

let serial = 0
const freshId = (): string => `fresh-${++serial}`

/** An organization invites thirty times an hour. */
const forgetInvitations = async (api: TestApiServer): Promise<void> => {
  await api.plane.database.rows(`delete from attempts where bucket = 'invitations'`)
}

/** An organization that has a provider keeps it, so that what its sessions reach is no matter of what was called before. */
const keepSso = async ({ team, sso }: Range): Promise<void> => {
  const body = sso ?? ROUTES.putSso.examples.request
  assert.equal((await team.owner.call('putSso', { params: { org: ORG }, body })).status, 200)
}

/** What a route needs beyond a ready preview: its author says it here. */
const PREPARE: Partial<Record<OperationId, (range: Range, env: string) => Promise<void>>> = {
  resumeEnvironment: async ({ team }, env) => {
    const { body } = await team.owner.call('suspendEnvironment', { params: at(env) })
    assert.equal((await finished(team.owner, body.id)).state, 'succeeded')
  },
  createInvitation: ({ api }) => forgetInvitations(api),
  getSso: keepSso,
  deleteSso: keepSso,
  putSso: keepSso,
  getConnection: async ({ api }, env) => {
    const resource = await api.resource(ORG, PROJECT, env)
    assert.ok(resource)
    const { uid, namespace, name } = resource.metadata
    const credential = { username: 'app', password: 'secret' }
    await api.credentials.write({ uid, namespace, name }, { app: credential, ops: credential })
    const endpoint = { host: '127.0.0.1', port: 20001, sslmode: 'disable' as const }
    await api.store.patchStatus(environmentType, keyOf(resource), { endpoint }, { uid })
    const folded = `select 1 from environments where uid = $1 and status -> 'endpoint' is not null`
    while ((await api.plane.database.row(folded, [uid])) === undefined);
  },
}

/** The code of a device that waits. */
const waitingCode = async ({ api }: Range): Promise<string> => {
  const asked = { body: { client_name: 'target' }, headers: fromAnywhere() }
  const { status, text, body } = await api.nobody.call('requestDeviceCode', asked)
  assert.equal(status, 200, text)
  return body.user_code
}

/** Something of each kind that a path can name, made when it does. */
const TARGETS: Readonly<Record<string, (range: Range, caller: ApiClient, route: Route) => Promise<string>>> = {
  org: () => Promise.resolve(ORG),
  env: async ({ team }) => {
    const env = freshId()
    assert.equal((await created(team.owner, env, { kind: 'preview', ttl_hours: 1 })).state, 'succeeded')
    return env
  },
  project: async ({ team }) => {
    const project = freshId()
    const body = { region: 'local', postgres_major: 17 }
    assert.equal((await team.owner.call('putProject', { params: { org: ORG, project }, body })).status, 200)
    return project
  },
  subject: async ({ api, team }) => {
    const { userId } = await api.makeCaller('target')
    const params = { org: ORG, subject: `user:${userId}` }
    assert.equal((await team.owner.call('putMember', { params, body: { role: 'viewer' } })).status, 200)
    return params.subject
  },
  operation: async ({ team }) => (await created(team.owner, freshId())).id,
  token: async (_range, caller, route) => {
    const scopes = route.operationId === 'listTokenEvents' ? { scopes: ['read'] } : {}
    return (await caller.call('createToken', { body: { name: 'target', ...scopes } })).body.id
  },
  user_code: waitingCode,
  session: async ({ api, team }) => (await signInAs(api, team.owner)).session.session_id,
  invitation: async ({ api, team }) => {
    await forgetInvitations(api)
    const body = { email: `${freshId()}@example.com`, role: 'viewer' }
    return (await team.owner.call('createInvitation', { params: { org: ORG }, body })).body.invitation_id
  },
  api_key: async ({ team }) =>
    (await team.owner.call('createApiKey', { params: { org: ORG }, body: { name: 'target', scopes: ['read'] } })).body
      .api_key_id,
}

type Body = Readonly<Record<string, unknown>>

/** An app of the owner's, and what shows both. */
const bothFactors = async ({ api, team }: Range): Promise<Body> => {
  const { secret } = await enrolTotp(await signInAs(api, team.owner))
  return { password: TEST_PASSWORD, totp_code: codeOf(secret) }
}

/** What a caller who is signed in can really send: the rest is examples. */
const BODIES: Partial<Record<OperationId, (range: Range) => Body | Promise<Body> | undefined>> = {
  putSso: ({ sso }) => sso,
  // The same again: the callers after this one sign in with it.
  changePassword: () => ({ current_password: TEST_PASSWORD, new_password: TEST_PASSWORD }),
  beginTotp: async ({ api, team }) => {
    await signInAs(api, team.owner)
    return { password: TEST_PASSWORD }
  },
  confirmTotp: async ({ api, team }) => ({ code: codeOf(await beginTotp(await signInAs(api, team.owner))) }),
  issuePasswordReset: async ({ api }) => ({
    email: (await api.makeCaller('target')).email,
    admin_password: TEST_PASSWORD,
  }),
  approveDevice: async range => ({ user_code: await waitingCode(range), scopes: ['read'] }),
  denyDevice: async range => ({ user_code: await waitingCode(range) }),
  removeTotp: bothFactors,
  renewRecoveryCodes: bothFactors,
}

const bodyOf = (route: Route): Readonly<Record<string, unknown>> | undefined => {
  const { request } = route.examples
  if (typeof request !== 'object' || request === null) return undefined
  const ids = { organization_id: ORG, project_id: PROJECT, environment_id: freshId() }
  const named = Object.entries(ids).filter(([field]) => Object.hasOwn(request, field))
  return { ...request, ...Object.fromEntries(named) }
}

/** A request that succeeds when its caller may make it. */
export const aimAt = async (route: Route, range: Range, caller: ApiClient): Promise<Aim> => {
  const params: Record<string, string> = {}
  const names = Object.keys(route.params?.shape ?? {})
  for (const name of names) {
    const target = TARGETS[name]
    assert.ok(target, `${route.operationId}: say in TARGETS what {${name}} can be`)
    // An environment stands in the team's own project.
    params[name] = name === 'project' && names.includes('env') ? PROJECT : await target(range, caller, route)
  }
  await PREPARE[route.operationId as OperationId]?.(range, params['env'] ?? '')
  return {
    params,
    query: route.organization === 'query' ? { organization_id: ORG } : {},
    body: (await BODIES[route.operationId as OperationId]?.(range)) ?? bodyOf(route),
    headers: route.organization === 'header' ? { 'X-Service-Organization-ID': ORG } : {},
  }
}
