/** A server, its team, and a real identity provider that organizations may have. */
import { type ApiServerOptions, startTestApiServer, type TestApiServer } from './api-server.ts'
import { type ApiTeam, makeTeam } from './api-team.ts'
import { startIdentityProvider, type TestIdentityProvider } from './identity-provider.ts'
import { SSO_CLIENT, SSO_ENVIRONMENT } from './sso.ts'

export interface SsoWorld {
  readonly provider: TestIdentityProvider
  readonly api: TestApiServer
  readonly team: ApiTeam
  /** Rows of the control-plane database. */
  readonly rows: <Row extends object>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>
  /** The last failed sign-in's reason. */
  lastFailure(): Promise<unknown>
  stop(): Promise<void>
}

export const startSsoWorld = async ({ environment, ...options }: ApiServerOptions = {}): Promise<SsoWorld> => {
  const provider = await startIdentityProvider({ clients: [SSO_CLIENT] })
  const api = await startTestApiServer({
    operator: false,
    ...options,
    environment: { ...SSO_ENVIRONMENT, ...environment },
  })
  const team = await makeTeam(api)
  const { database } = api.plane
  return {
    provider,
    api,
    team,
    rows: <Row extends object>(text: string, values?: readonly unknown[]) => database.rows<Row>(text, values),
    lastFailure: async () =>
      (
        await database.row<{ metadata: Readonly<Record<string, unknown>> }>(
          `select metadata from account_events where type = 'sign_in_failed' order by id desc limit 1`,
        )
      )?.metadata['reason'],
    stop: async () => {
      await api.stop()
      await provider.stop()
    },
  }
}
