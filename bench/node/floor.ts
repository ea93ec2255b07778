/** The floor of everything on a node: a bare StatefulSet of the same image, made of the same template, with nobody who looks after it. */
import type { V1StatefulSet } from '@kubernetes/client-node'
import type {
  KubernetesObject,
  KubernetesObjects,
  ObjectKey,
  ObjectType,
} from '../../runtime/kubernetes/kubernetes-object.ts'
import { CLAIM } from '../../testkit/kubernetes/claim-faker.ts'

export const STATEFUL_SET: ObjectType<V1StatefulSet> = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
}

const UID = 999
const VOLUME_PATH = '/var/lib/postgresql/data'

const asks = (question: string) => ({ exec: { command: ['svc-probe', question] } })

/** With the figures and the probes of a staging environment, and its command line as short as it can be. */
const bareStatefulSet = (namespace: string, name: string, image: string): V1StatefulSet => {
  const labels = { app: name }
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { namespace, name },
    spec: {
      replicas: 1,
      serviceName: name,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: { runAsNonRoot: true, runAsUser: UID, runAsGroup: UID, fsGroup: UID },
          containers: [
            {
              name: 'postgres',
              image,
              imagePullPolicy: 'IfNotPresent',
              env: [{ name: 'SVC_NEW_DATA', value: 'allowed' }],
              resources: { limits: { cpu: '500m', memory: '256Mi' }, requests: { cpu: '50m', memory: '256Mi' } },
              startupProbe: { ...asks('ready'), periodSeconds: 1, timeoutSeconds: 4, failureThreshold: 300 },
              readinessProbe: { ...asks('ready'), periodSeconds: 10, timeoutSeconds: 5 },
              livenessProbe: { ...asks('alive'), periodSeconds: 30, timeoutSeconds: 10, failureThreshold: 10 },
              volumeMounts: [
                { name: 'data', mountPath: VOLUME_PATH },
                { name: 'run', mountPath: '/run/postgresql' },
              ],
            },
          ],
          volumes: [
            { name: 'data', persistentVolumeClaim: { claimName: name } },
            { name: 'run', emptyDir: {} },
          ],
        },
      },
    },
  }
}

/** Makes one and its claim: two calls. */
export const makeBare = async (
  objects: KubernetesObjects,
  { namespace, name, image }: ObjectKey & { readonly image: string },
): Promise<void> => {
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  await Promise.all([
    objects.create(CLAIM, claim),
    objects.create(STATEFUL_SET, bareStatefulSet(namespace, name, image)),
  ])
}

/** Has it run, or not. */
export const scaleBare = (objects: KubernetesObjects, key: ObjectKey, replicas: 0 | 1): Promise<unknown> =>
  objects.merge(STATEFUL_SET, key, { spec: { replicas } })

/** Deletes both. */
export const removeBare = async (objects: KubernetesObjects, key: ObjectKey): Promise<void> => {
  const remove = async <O extends KubernetesObject>(type: ObjectType<O>): Promise<void> => {
    const uid = (await objects.get(type, key))?.metadata?.uid
    if (uid !== undefined) await objects.delete(type, key, { uid })
  }
  await remove(STATEFUL_SET)
  await remove(CLAIM)
}
