/** What an instance's objects are called and how they say whose they are. Pure. */
import {
  ANNOTATIONS,
  API_VERSION,
  environmentLabels,
  instanceName,
  LABELS,
  OPERATOR,
  POSTGRES_APP,
  shortUid,
} from '../../../crds/metadata.ts'
import type { InstanceRef } from '../host.ts'
import type { OwnerReference } from './object-types.ts'

export interface InstanceNames {
  readonly namespace: string
  /** Of the StatefulSet and the Service. */
  readonly name: string
  /** The one pod that the StatefulSet makes. */
  readonly pod: string
  /** Carries the uid: never met by the next owner of the id. */
  readonly claim: string
  /** The Secret with the server's files. */
  readonly files: string
  /** On everything. */
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** What the StatefulSet and the Service find the pod by; never changes. */
  readonly selector: Readonly<Record<string, string>>
  /** Has all but the claim collected when the Environment is gone. */
  readonly owner: OwnerReference
  /** What clients are told. */
  readonly host: string
  /** Every name the server's certificate is good for, the clients' first. */
  readonly hosts: readonly string[]
}

export const instanceNames = ({ key, uid, path }: InstanceRef, managedBy: string = OPERATOR): InstanceNames => {
  const { namespace } = key
  const name = instanceName(path)
  const keyed = `${name}-${shortUid(uid)}`
  const host = `${name}.${namespace}.svc`
  return {
    namespace,
    name,
    pod: `${name}-0`,
    claim: keyed,
    files: `${keyed}-tls`,
    labels: {
      ...environmentLabels(path),
      [LABELS.uid]: uid,
      [LABELS.managedBy]: managedBy,
      [LABELS.app]: POSTGRES_APP,
    },
    annotations: { [ANNOTATIONS.resource]: key.name },
    selector: { [LABELS.uid]: uid },
    owner: { apiVersion: API_VERSION, kind: 'Environment', name: key.name, uid, controller: true },
    host,
    hosts: [host, `${host}.cluster.local`, `${name}.${namespace}`, name],
  }
}
