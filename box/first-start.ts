/**
 * What a first start makes, so that there is something to connect to: an organization, a project and an environment,
 * asked for through the public API like anybody else would. Every step may be repeated: a start that was cut short is
 * finished by the next one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { BoxError } from './box-error.ts'
import { readSecret, writeSecret } from './write-secret.ts'

export const FIRST_ORGANIZATION = 'demo'
export const FIRST_PROJECT = 'app'
export const FIRST_ENVIRONMENT = 'main'

/** What $SERVICE_HOME/credentials.json holds, for scripts. */
export interface Credentials {
  readonly base_url: string
  readonly organization_id: string
  readonly token: string
}

const CALL_TIMEOUT_MS = 30_000
const READY_TIMEOUT_MS = 120_000
/** How long a start waits for a database that was running before: it may have much to recover. */
const COMES_BACK_MS = 60_000
const POLL_MS = 50

/** The credentials file of a home; undefined before the first start, or when it is gone. @throws BoxError */
export const readCredentials = (path: string): Credentials | undefined => {
  const text = readSecret(path)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as Credentials
  } catch (cause) {
    throw new BoxError(`Cannot read ${path}: delete it, and the next start makes a new token`, { cause })
  }
}

/** Keeps the credentials, unless they stand there already. */
export const keepCredentials = (path: string, credentials: Credentials): void => {
  const text = `${JSON.stringify(credentials, null, 2)}\n`
  if (readSecret(path) !== text) writeSecret(path, text)
}

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

const call = async (
  credentials: Credentials,
  method: string,
  path: string,
  options: { readonly key?: string; readonly body?: unknown } = {},
): Promise<Answer> => {
  const response = await fetch(credentials.base_url + path, {
    method,
    headers: {
      connection: 'close', // a stop tells kept connections, and would wait for ours
      authorization: `Bearer ${credentials.token}`,
      'x-service-organization-id': credentials.organization_id,
      ...(options.key === undefined ? {} : { 'idempotency-key': options.key }),
      ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** Whether the API takes the token: not once it was revoked. */
export const isAccepted = async (credentials: Credentials): Promise<boolean> =>
  (await call(credentials, 'GET', '/v1/organizations')).status !== 401

const refused = (what: string, { status, body }: Answer): BoxError =>
  new BoxError(`Cannot ${what}: the API answered ${status} ${String(body['code'])}: ${String(body['detail'])}`)

const environmentPath = `/v1/organizations/${FIRST_ORGANIZATION}/projects/${FIRST_PROJECT}/environments/${FIRST_ENVIRONMENT}`

/**
 * Makes what a first start makes and waits until the environment is ready.
 * @throws BoxError when the API refuses something or the environment does not become ready
 */
export const makeFirstEnvironment = async (credentials: Credentials): Promise<void> => {
  const organization = await call(credentials, 'PUT', `/v1/organizations/${FIRST_ORGANIZATION}`, {
    key: 'first-start-organization',
    body: { name: 'Demo' },
  })
  if (organization.status !== 200) throw refused(`make the organization "${FIRST_ORGANIZATION}"`, organization)
  const project = await call(credentials, 'PUT', `/v1/organizations/${FIRST_ORGANIZATION}/projects/${FIRST_PROJECT}`, {
    key: 'first-start-project',
    body: { region: 'local', postgres_major: 17 },
  })
  if (project.status !== 200) throw refused(`make the project "${FIRST_PROJECT}"`, project)
  const environment = await call(credentials, 'POST', '/v1/environments', {
    key: 'first-start-environment',
    body: {
      organization_id: FIRST_ORGANIZATION,
      project_id: FIRST_PROJECT,
      environment_id: FIRST_ENVIRONMENT,
      kind: 'staging',
    },
  })
  const exists = environment.status === 409 && environment.body['code'] === 'environment_exists'
  if (environment.status !== 202 && !exists) throw refused(`make the environment "${FIRST_ENVIRONMENT}"`, environment)
  const until = performance.now() + READY_TIMEOUT_MS
  for (;;) {
    const { status, body } = await call(credentials, 'GET', environmentPath)
    if (status === 200 && body['phase'] === 'ready') return
    if (performance.now() > until)
      throw new BoxError(
        `The environment "${FIRST_ENVIRONMENT}" is not ready after ${READY_TIMEOUT_MS / 1000} s: it is ${String(body['phase'])}, ${String(body['status_message'])}`,
      )
    await sleep(POLL_MS)
  }
}

/**
 * The URI of the first environment, once it is up again after a start; undefined when there is none any more, when it sleeps
 * or stays broken, or when the token was revoked.
 */
export const firstConnectionUri = async (credentials: Credentials): Promise<string | undefined> => {
  const until = performance.now() + COMES_BACK_MS
  for (;;) {
    const environment = await call(credentials, 'GET', environmentPath)
    if (environment.status !== 200) return undefined
    if (environment.body['phase'] !== 'updating') break
    if (performance.now() > until) return undefined
    await sleep(POLL_MS)
  }
  const { status, body } = await call(credentials, 'GET', `${environmentPath}/connection`)
  return status === 200 ? String(body['connection_uri']) : undefined
}
