/** The real API server on real databases, with the embedded store and a stand-in for the operator. */
import { randomBytes, randomUUID } from 'node:crypto'
import { Registry } from 'prom-client'
import { makeUser } from '../apiserver/commands/make-user.ts'
import { type ApiServerConfig, apiServerConfig } from '../apiserver/config/config.ts'
import { type ApiServerInstance, type RunningApiServer, startApiServer } from '../apiserver/start.ts'
import type { Environment } from '../crds/environment.ts'
import { environmentType } from '../crds/environment-type.ts'
import { projectNamespace } from '../crds/metadata.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import type { Credentials } from '../runtime/credentials/credentials.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { jsonLog } from '../runtime/log/json-log.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import { ApiClient } from './api-client.ts'
import { EVERY_LEVEL, isAnnouncement, startApiProcess, UNLIMITED } from './api-process.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase, dumpOf } from './control-plane-database.ts'
import { storeDatabase } from './embedded-store.ts'
import { memoryCredentials } from './memory-credentials.ts'
import { assertNoSecrets, keepingErrors, noteSecretSettings, noteSecrets } from './secrets-of-tests.ts'
import { type StandinOperator, startStandinOperator } from './standin-operator.ts'

export interface ApiServerOptions {
  readonly config?: Partial<ApiServerConfig>
  readonly environment?: Readonly<Record<string, string>>
  readonly store?: (store: ResourceStore) => ResourceStore
  readonly caCertificate?: string
  readonly tenantAddress?: string
  /** Turns the URL of the control-plane database into another way to it. */
  readonly databaseUrl?: (plane: ControlPlaneDatabase) => string
  /** Without it environments stay requested. Default true. */
  readonly operator?: boolean
  /** Whether other replicas are processes of their own, as in production; they know the environment alone. Default: in this process. */
  readonly replicas?: 'here' | 'processes'
  /** Which lines of the log are kept. Default: all, which is too many where a test makes very many requests. */
  readonly keeps?: (line: string) => boolean
}

/** Someone who can call: a user with a token. */
export interface ApiCaller extends ApiClient {
  readonly email: string
  readonly userId: string
  readonly tokenId: string
  readonly token: string
}

export type ReplicaKeys = Pick<ApiServerInstance, 'masterKey' | 'previousMasterKeys'>

export interface TestApiServer {
  readonly url: string
  readonly server: RunningApiServer
  readonly plane: ControlPlaneDatabase
  readonly store: ResourceStore
  readonly credentials: Credentials
  readonly registry: Registry
  /** Every line that was logged. */
  readonly logged: readonly string[]
  readonly nobody: ApiClient
  /** What seals. */
  readonly masterKey: Buffer
  /** The URL of another replica, on the same databases; with other keys where they are given. */
  startReplica(keys?: ReplicaKeys): Promise<string>
  /** Makes a user who is a member of nothing. */
  makeCaller(name: string, options?: { readonly isOperator?: boolean }): Promise<ApiCaller>
  /** The resource of an environment, as it is in the store. */
  resource(organizationId: string, projectId: string, environmentId: string): Promise<Environment | undefined>
  stop(): Promise<void>
}

const base64 = (key: Buffer): string => key.toString('base64')

/** Generous, so that no test meets a limit that it does not ask for. */
const NO_LIMITS = {
  requestsPerMinute: 0,
  mutationsPerMinute: 0,
  connectionReadsPerMinute: 0,
  verificationsPerMinute: 0,
  anonymousPerMinute: 0,
  burst: 1,
}

/** Starts one on a free port; its end fails when a secret of a test stands in what it wrote. */
export const startTestApiServer = async (options: ApiServerOptions = {}): Promise<TestApiServer> => {
  const plane = await controlPlaneDatabase()
  const storeUrl = await storeDatabase()
  const embedded = new EmbeddedResourceStore({ url: storeUrl, clientName: 'svc-apiserver' })
  const store = options.store?.(embedded) ?? embedded
  const credentials = memoryCredentials()
  const registry = new Registry()
  const logged: string[] = []
  /** Without what is announced to whoever starts it: a setup token is. */
  const written: string[] = []
  /** What the log was given as errors, with all that hangs on them. */
  const errors: unknown[] = []
  const write = (line: string): void => {
    if (options.keeps?.(line) === false) return
    logged.push(line)
    written.push(line)
  }
  const masterKey = randomBytes(32)
  for (const encoding of ['base64', 'hex'] as const) noteSecrets(masterKey.toString(encoding))
  noteSecretSettings(options.environment ?? {})
  const start = (metrics: Registry, keys: ReplicaKeys = { masterKey }): Promise<RunningApiServer> =>
    startApiServer(
      {
        ...apiServerConfig(options.environment ?? {}),
        listen: { host: '127.0.0.1', port: 0 },
        limits: NO_LIMITS,
        stop: { graceMs: 0, drainMs: 20_000 }, // tests keep connections open and tell nobody
        ...options.config,
        databaseUrl: options.databaseUrl?.(plane) ?? plane.url('svc_api'),
        ...keys,
      },
      {
        store,
        credentials,
        registry: metrics,
        announce: text => void logged.push(text),
        log: keepingErrors(jsonLog({ write }, 'debug'), errors),
        caCertificate: options.caCertificate,
        tenantAddress: options.tenantAddress,
      },
    )
  const server = await start(registry)
  const registries = [registry]
  const replicas: { stop(): Promise<unknown> }[] = []
  const startProcess = async ({ masterKey: current, previousMasterKeys = [] }: ReplicaKeys): Promise<string> => {
    const environment = {
      SERVICE_DATABASE_URL: plane.url('svc_api'),
      SERVICE_STORE_URL: storeUrl,
      SERVICE_AUTH_MODE: 'builtin',
      SERVICE_KMS_MASTER_KEY: base64(current),
      SERVICE_KMS_PREVIOUS_MASTER_KEYS: previousMasterKeys.map(base64).join(),
      ...EVERY_LEVEL,
      ...UNLIMITED,
      ...options.environment,
    }
    const process = await startApiProcess({ plane, environment }, {}, line => {
      if (isAnnouncement(line)) logged.push(line)
      else write(line)
    })
    replicas.push(process)
    return process.url
  }
  const operator: StandinOperator | undefined = options.operator === false ? undefined : startStandinOperator(embedded)
  await server.ready
  return {
    url: server.url,
    server,
    plane,
    store: embedded,
    credentials,
    registry,
    logged,
    nobody: new ApiClient(server.url),
    masterKey,
    startReplica: async (keys = { masterKey }) => {
      if (options.replicas === 'processes') return startProcess(keys)
      const metrics = new Registry()
      registries.push(metrics)
      const replica = await start(metrics, keys)
      replicas.push(replica)
      return replica.url
    },
    makeCaller: async (name, { isOperator = false } = {}) => {
      const email = `${randomUUID()}@example.com`
      const made = await makeUser(plane.database, {
        email,
        name,
        isOperator,
        tokenName: name,
      })
      const client = new ApiClient(server.url, made.token)
      return Object.assign(client, { email, userId: made.userId, tokenId: made.tokenId, token: made.token })
    },
    resource: (organizationId, projectId, environmentId) =>
      store.get(environmentType, {
        namespace: projectNamespace(organizationId, projectId),
        name: environmentName({ organizationId, projectId, environmentId }),
      }),
    stop: async () => {
      // At once: some tests look at what is being stopped.
      const stopping = [server, ...replicas].map(each => each.stop())
      const metrics = await Promise.all(registries.map(each => each.metrics()))
      await Promise.all(stopping)
      await operator?.stop()
      await embedded.close()
      await plane.database.stop()
      const rows = await dumpOf(plane)
      assertNoSecrets({
        'the log': written,
        'the errors': errors,
        'the metrics': metrics.flatMap(each => each.split('\n')),
        'the database': rows,
      })
    },
  }
}
