import { DomainError } from '../../../lib/errors/domain-error.ts'
import { readConnection } from '../../commands/read-connection.ts'
import type { Handlers } from '../../context.ts'
import { connectionUri } from '../../tenant/connection-uri.ts'
import { environmentPath } from './environment-path.ts'

export const getConnection: Handlers['getConnection'] = async ({ params, call }, context) => {
  const { namespace, resourceName: name, uid, status } = await readConnection(context, call, environmentPath(params))
  const credentials = await context.credentials.read({ namespace, name, uid })
  if (credentials === undefined)
    throw new DomainError('store_unavailable', 'The environment’s credentials cannot be read right now; try again')
  const ca = status.endpoint.sslmode === 'disable' ? undefined : context.caCertificate
  return {
    status: 200,
    body: {
      connection_uri: connectionUri(status.endpoint, credentials.app),
      ...(ca === undefined ? {} : { ca_certificate: ca }),
    },
  }
}
