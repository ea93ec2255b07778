/** Composes the API server: configuration and ports in, a running service out. */
import { Gauge, type Registry } from 'prom-client'
import { isCurrent } from '../lib/credentials/argon2-hash.ts'
import type { BackoffPolicy } from '../runtime/controller/backoff.ts'
import type { Credentials } from '../runtime/credentials/credentials.ts'
import type { Log } from '../runtime/log/log.ts'
import { assertMigrated, readMigrations } from '../runtime/postgres/migrate.ts'
import { untilBack } from '../runtime/postgres/until-back.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import { AgentRequests } from './auth/agent-requests.ts'
import { accountTokens } from './auth/authenticate/account-token.ts'
import { apiKeys } from './auth/authenticate/api-key.ts'
import { oidcTokens } from './auth/authenticate/oidc-token.ts'
import { sessions } from './auth/authenticate/session.ts'
import { LastUsed } from './auth/last-used.ts'
import type { IdentityProvider } from './auth/oidc/identity-provider.ts'
import { SsoProviders } from './auth/oidc/sso-providers.ts'
import { PasswordHasher } from './auth/passwords/password-hasher.ts'
import { RecentTries } from './auth/passwords/recent-tries.ts'
import { accessSentence } from './auth/policy.ts'
import type { CommandSettings } from './commands/dependencies.ts'
import type { LoginSettings } from './commands/login/dependencies.ts'
import { prepareFirstAdministrator } from './commands/login/first-administrator.ts'
import type { ApiServerConfig } from './config/config.ts'
import type { ApiContext } from './context.ts'
import { openApiDocument } from './contract/openapi.ts'
import { ROUTES } from './contract/routes.ts'
import type { ProjectNamespaces } from './dispatch/project-namespaces.ts'
import { type DispatchAndProjection, startDispatchAndProjection } from './dispatch/start-dispatch-and-projection.ts'
import { startHousekeeping } from './housekeeping.ts'
import { Admission } from './http/admit.ts'
import { answering } from './http/answering.ts'
import { createApp } from './http/app.ts'
import { bindRoutes } from './http/bind-routes.ts'
import { httpMetrics } from './http/http-metrics.ts'
import { HttpServer } from './http/http-server.ts'
import { Limits } from './http/limits.ts'
import { pagesRouter } from './http/pages.ts'
import type { ReadinessCheck } from './http/readiness.ts'
import { Traffic } from './http/traffic.ts'
import { type Links, linksOf } from './links.ts'
import { openMailTransport } from './mail/open-mail-transport.ts'
import { startMail } from './mail/start-mail.ts'
import { rowsAgree } from './projector/rows-agree.ts'
import { HANDLERS } from './routes/index.ts'
import { openServerKeys, type ServerKeys } from './server-keys.ts'
import { checkServingRole } from './store/check-serving-role.ts'
import { Database } from './store/database.ts'
import { MIGRATIONS_FOLDER } from './store/migrations.ts'

const WRITE_THROUGH_WAIT_MS = 2000
const CLIENT_NAME = 'svc-apiserver'

/** What the API server is told beside its settings: where its database is, and what seals secrets. */
export interface ApiServerInstance extends ApiServerConfig {
  /** As the role that serves. */
  readonly databaseUrl: string
  readonly masterKey: Buffer
  /** Earlier ones, which only open what they sealed. */
  readonly previousMasterKeys?: readonly Buffer[]
  /** What an earlier key sealed is sealed anew before it serves: where no other server is, which might not know the new key. */
  readonly rewrapAtStart?: boolean
  /** How long a start waits for a database that is away, because somebody brings it back; by default not at all. */
  readonly databasePatienceMs?: number
  /** Waits between attempts to reach the resource store again; by default those for a store that thousands share. */
  readonly reconnect?: BackoffPolicy
}

export interface ApiServerPorts {
  readonly store: ResourceStore
  readonly credentials: Credentials
  readonly log: Log
  readonly registry: Registry
  /** Says the setup token to whoever reads the log. Not through the log itself, which takes out what looks like a secret. */
  readonly announce?: (text: string) => void
  /** Namespaces of projects, where they are more than names. */
  readonly projectNamespaces?: ProjectNamespaces
  /** PEM of the authority of environments' servers, where they speak TLS. */
  readonly caCertificate?: string | undefined
  /** Where this process reaches environments' servers, when not by the name that clients are told. */
  readonly tenantAddress?: string | undefined
  /** What else has to be well before `/readyz` says so, by name. */
  readonly readiness?: Readonly<Record<string, ReadinessCheck>>
}

export interface RunningApiServer {
  readonly url: string
  /** With which the first administrator is made; undefined: there is one. A secret, said once. */
  readonly setupToken: string | undefined
  /** Resolves once everything in the resource store was folded into rows, which `/readyz` waits for too. */
  readonly ready: Promise<void>
  /**
   * Resolves once the rows have caught up with what the resource store holds at the moment of the call; rejects when the
   * server is stopped before.
   */
  rowsAgree(): Promise<void>
  /** Drains, then lets go of everything. May be called again. */
  stop(): Promise<void>
}

const settingsOf = (config: ApiServerConfig, links: Links): CommandSettings => {
  const seconds = config.operationDeadlineSeconds
  return {
    plan: config.plan,
    previewDefaultTtlHours: config.previewDefaultTtlHours,
    operationDeadlineSeconds: { create: seconds, suspend: seconds, resume: seconds, rotate: seconds, delete: seconds },
    links,
    publicSignup: config.publicSignup,
    issuer: config.auth.mode === 'oidc' ? config.auth.issuer : undefined,
    writeThroughWaitMs: WRITE_THROUGH_WAIT_MS,
  }
}

const LOCKOUT_WINDOW_SECONDS = 900

const loginSettingsOf = (
  { login, publicSignup }: ApiServerInstance,
  { codeKey, rotationKey }: ServerKeys,
  links: Links,
): LoginSettings => {
  return {
    codeKey,
    publicSignup,
    sessions: { ...login.sessions, rotationKey },
    lockout: {
      maxFailures: login.maxFailures,
      windowSeconds: LOCKOUT_WINDOW_SECONDS,
      lockoutSeconds: login.lockoutSeconds,
    },
    links,
  }
}

const observePool = (database: Database, registry: Registry): void => {
  new Gauge({
    name: 'svc_database_connections',
    help: 'Connections to the control-plane database: all, idle, and callers waiting for one',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, value] of Object.entries(database.load)) this.set({ state }, value)
    },
  })
}

interface Synced {
  now: boolean
}

const readinessChecks = (database: Database, synced: Synced, ports: ApiServerPorts): ApiContext['readiness'] => ({
  database: async () => {
    await database.row('select 1')
  },
  resources: async () => {
    if (!synced.now) throw new Error('Not every resource was folded yet')
  },
  ...ports.readiness,
})

const contextOf = (
  config: ApiServerInstance,
  ports: ApiServerPorts,
  database: Database,
  dispatch: DispatchAndProjection,
  rest: Pick<ApiContext, 'agentRequests' | 'login' | 'readiness' | 'sealingKey' | 'contentKey' | 'stopping'>,
): ApiContext => ({
  database,
  store: ports.store,
  credentials: ports.credentials,
  log: ports.log,
  settings: settingsOf(config, rest.login.settings.links),
  plan: config.plan,
  wakeDispatcher: environmentRow => dispatch.wake(environmentRow),
  mailbox: rest.login.mailbox,
  caCertificate: ports.caCertificate,
  tenantAddress: ports.tenantAddress,
  ...rest,
})

/** What is noted of requests after they were answered. */
interface WrittenBehind {
  readonly lastUsed: LastUsed
  readonly agentRequests: AgentRequests
}

const httpServer = (
  config: ApiServerInstance,
  ports: ApiServerPorts,
  written: WrittenBehind,
  database: Database,
  provider: IdentityProvider | undefined,
  contextFor: (stopping: () => boolean) => ApiContext,
): HttpServer => {
  const { log } = ports
  const metrics = httpMetrics(ports.registry)
  const { lastUsed, agentRequests } = written
  const traffic = new Traffic({ trusted: config.trustedProxies, log, metrics, agentRequests })
  const limits = new Limits(config.limits, policy => metrics.rateLimited.inc({ policy }))
  const stopping = (): boolean => server.draining
  const answers = answering({ log, publicUrl: config.publicUrl, closing: stopping })
  const context = contextFor(stopping)
  const authenticators = [
    accountTokens(database, lastUsed),
    apiKeys(database, lastUsed),
    sessions(database, lastUsed, context.login.settings.sessions, log),
    ...(provider === undefined ? [] : [oidcTokens(database, provider)]),
  ]
  const admission = new Admission(authenticators, limits)
  const builtinLogin = config.auth.mode === 'builtin'
  const routes = bindRoutes(HANDLERS, { admission, context, builtinLogin, ...answers })
  const pages = pagesRouter(openApiDocument(Object.values(ROUTES), accessSentence), answers)
  const server = new HttpServer(createApp(traffic, answers.fail, [routes, pages]), traffic, config.publicUrl)
  return server
}

const keysOf = async (config: ApiServerInstance, database: Database): Promise<ServerKeys> => {
  const { masterKey, previousMasterKeys = [], rewrapAtStart = false, databasePatienceMs = 0 } = config
  const options = { rewrap: rewrapAtStart, patienceMs: databasePatienceMs }
  try {
    return await openServerKeys({ current: masterKey, previous: previousMasterKeys }, database, options)
  } catch (error) {
    await database.stop()
    throw error
  }
}

const OTHER_COST =
  'SERVICE_ADMIN_PASSWORD_HASH costs more or less than all other hashes: until its owner signs in, the time of a refused sign-in tells that there is this account. node apiserver/hash-password.ts makes one of the same cost'

/** While there is no administrator every start says the token with which one is made, and voids the one before. */
const sayHowToSetUp = async (
  { administrator, databasePatienceMs = 0 }: ApiServerInstance,
  database: Database,
  { announce, log }: Pick<ApiServerPorts, 'announce' | 'log'>,
): Promise<string | undefined> => {
  if (administrator.passwordHash !== undefined && !isCurrent(administrator.passwordHash)) log.warn({}, OTHER_COST)
  try {
    const token = await untilBack(() => prepareFirstAdministrator(database, administrator), databasePatienceMs)
    if (token !== undefined)
      announce?.(`There is no administrator yet. Make one with this token, which the next start voids: ${token}`)
    return token
  } catch (error) {
    await database.stop()
    throw error
  }
}

const identityProviderOf = async (
  { auth }: ApiServerConfig,
  { log, registry }: ApiServerPorts,
): Promise<IdentityProvider | undefined> => {
  if (auth.mode === 'builtin') return undefined
  // Loaded where it is used.
  const { IdentityProvider } = await import('./auth/oidc/identity-provider.ts')
  return new IdentityProvider({ config: auth, log, registry })
}

/**
 * Starts serving.
 * @throws SealError before anything is written when the master key is not the one that sealed what is there
 * @throws MigrationError when the database's history is not exactly ours: newer, older, edited
 * @throws Error when the role we serve as could change the audit log, or the address is taken
 */
export const startApiServer = async (config: ApiServerInstance, ports: ApiServerPorts): Promise<RunningApiServer> => {
  const { log, registry, store } = ports
  const { databaseUrl, operatorNamespace } = config
  const provider = await identityProviderOf(config, ports)
  const providers = new SsoProviders({ ...config.sso, log })
  const transport = config.mail === undefined ? undefined : await openMailTransport(config.mail)
  const migrations = await readMigrations(MIGRATIONS_FOLDER)
  const patienceMs = config.databasePatienceMs ?? 0
  await untilBack(() => assertMigrated(databaseUrl, migrations), patienceMs)
  const database = new Database({
    url: databaseUrl,
    log,
    maxConnections: config.databasePoolMax,
    statementTimeoutMs: config.databaseTimeoutMs,
  })
  try {
    await untilBack(() => checkServingRole(database), patienceMs)
  } catch (error) {
    await database.stop()
    throw error
  }
  const keys = await keysOf(config, database)
  // Where an identity provider says who people are, nobody is set up here.
  const setupToken = provider === undefined ? await sayHowToSetUp(config, database, ports) : undefined
  observePool(database, registry)
  const dispatch = startDispatchAndProjection({
    database,
    store,
    namespaces: ports.projectNamespaces,
    log,
    registry,
    config: { databaseUrl, operatorNamespace, clientName: CLIENT_NAME, reconnect: config.reconnect },
  })
  const synced: Synced = { now: false }
  const ready = dispatch.ready().then(() => {
    synced.now = true
  })
  const written: WrittenBehind = {
    lastUsed: new LastUsed(database, log),
    agentRequests: new AgentRequests(database, log, registry),
  }
  const links = linksOf(config, () => server.url)
  const settings = loginSettingsOf(config, keys, links)
  const hasher = new PasswordHasher(log, registry)
  const { sealer } = keys
  const mail = startMail({ transport, database, sealer, consoleUrl: config.consoleUrl, log, registry })
  const housekeeping = startHousekeeping(database, settings, log)
  const release = async (): Promise<void> => {
    await Promise.all([
      dispatch.stop(),
      mail.stop(),
      housekeeping.stop(),
      written.lastUsed.flush(),
      written.agentRequests.flush(),
    ])
    hasher.stop()
    await database.stop()
  }
  const server = httpServer(config, ports, written, database, provider, stopping =>
    contextOf(config, ports, database, dispatch, {
      agentRequests: written.agentRequests,
      login: { database, log, hasher, tries: new RecentTries(), settings, sealer, providers, mailbox: mail.mailbox },
      sealingKey: keys.replyKey,
      contentKey: keys.contentKey,
      readiness: readinessChecks(database, synced, ports),
      stopping,
    }),
  )
  try {
    const url = await server.listen(config.listen)
    log.info({ url }, 'The API listens')
    const stopping = new AbortController()
    let stopped: Promise<void> | undefined
    return {
      url,
      setupToken,
      ready,
      rowsAgree: () => rowsAgree(store, database, { signal: stopping.signal, log }),
      stop: () => {
        stopping.abort()
        return (stopped ??= server.stop(config.stop).then(release))
      },
    }
  } catch (error) {
    await release()
    throw error
  }
}
