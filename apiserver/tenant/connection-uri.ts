import type { Endpoint } from '../../crds/environment.ts'
import type { DatabaseCredential } from '../../runtime/credentials/credentials.ts'

/** The one database of an environment that is its tenant's. */
export const TENANT_DATABASE = 'app'

/** How to connect, made of what the operator reports and of the credential: nothing else says where an environment is. */
export const connectionUri = (endpoint: Endpoint, credential: DatabaseCredential): string => {
  const host = endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host
  const who = `${encodeURIComponent(credential.username)}:${encodeURIComponent(credential.password)}`
  return `postgresql://${who}@${host}:${endpoint.port}/${TENANT_DATABASE}?sslmode=${endpoint.sslmode}`
}

/** The same from outside the cluster, where it is exposed: the server proves that name too. */
export const externalUri = (endpoint: Endpoint, credential: DatabaseCredential): string | undefined => {
  const { external, sslmode } = endpoint
  return external === undefined ? undefined : connectionUri({ ...external, sslmode }, credential)
}
