import { DomainError } from '../../../lib/errors/domain-error.ts'
import { readConnection } from '../../commands/read-connection.ts'
import type { Handlers } from '../../context.ts'
import { connectionUri, externalUri } from '../../tenant/connection-uri.ts'
import { environmentPath } from './environment-path.ts'

export const getConnection: Handlers['getConnection'] = async ({ params, call }, context) => {
  const { namespace, resourceName: name, uid, status } = await readConnection(context, call, environmentPath(params))
  const credentials = await context.credentials.read({ namespace, name, uid })
  if (credentials === undefined)
    throw new DomainError('store_unavailable', 'The environment’s credentials cannot be read right now; try again')
  const { endpoint } = status
  const ca = endpoint.sslmode === 'disable' ? undefined : (endpoint.caCertificate ?? context.caCertificate)
  const external = externalUri(endpoint, credentials.app)
  return {
    status: 200,
    body: {
      connection_uri: connectionUri(endpoint, credentials.app),
      ...(ca === undefined ? {} : { ca_certificate: ca }),
      ...(external === undefined ? {} : { external_uri: external }),
    },
  }
}
