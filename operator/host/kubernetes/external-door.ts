/**
 * Where clients outside the cluster connect. They are told once the server proves the name by which they come: its certificate
 * is made for that name, and the Service notes that the server was seen to have read it. Pure.
 */

import type { Endpoint } from '../../../crds/environment.ts'
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import { POSTGRES_PORT } from '../../../lib/model/environment.ts'
import type { Exposure } from './host-settings.ts'
import type { Service } from './object-types.ts'

type External = NonNullable<Endpoint['external']>

/** Where that is, whatever the server proves; undefined where it is not exposed, or not yet. */
export const externalOf = (service: Service | undefined, exposure: Exposure): External | undefined => {
  const host = externalHost(service, exposure)
  if (host === undefined || service === undefined) return undefined
  if (exposure.type === 'LoadBalancer') return { host, port: POSTGRES_PORT }
  const port = service.spec?.ports?.[0]?.nodePort
  return port === undefined ? undefined : { host, port }
}

/** The name or address by which they come: that of nodes is known before there is a Service. */
export const externalHost = (service: Service | undefined, exposure: Exposure): string | undefined => {
  if (exposure.type === 'NodePort') return exposure.host
  if (exposure.type === 'None') return undefined
  const ingress = service?.status?.loadBalancer?.ingress?.[0]
  return ingress?.hostname ?? ingress?.ip
}

/** The name that the server was last seen to prove. */
export const provenHost = (service: Service | undefined): string | undefined =>
  service?.metadata?.annotations?.[ANNOTATIONS.provenHost]

/** Whether the server has yet to prove a name. */
export const isUnproven = (service: Service | undefined, exposure: Exposure): boolean => {
  const host = externalHost(service, exposure)
  return host !== undefined && host !== provenHost(service)
}
