import type { V1StatefulSet } from '@kubernetes/client-node'
import type { Environment } from '../crds/environment.ts'
import { instanceName, shortUid } from '../crds/metadata.ts'
import type { ObjectType } from '../runtime/kubernetes/kubernetes-object.ts'
import { POD } from '../testkit/kubernetes/pod-faker.ts'
import { runInPod } from './kubernetes/run-in-pod.ts'
import type { ClusterHandles } from './kubernetes/service-door.ts'

export const STATEFUL_SET: ObjectType<V1StatefulSet> = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
}
const CONTAINER = 'postgres'
const CONTROL = '/var/lib/postgresql/data/pgdata/global/pg_control'

/**
 * A process of the server is killed, so that it recovers; it cannot without its control file, and neither can its successors.
 * A moment later, for its container ends by that, and with it whatever runs in there.
 */
const BREAK = `mv ${CONTROL} ${CONTROL}.aside
(
  sleep 0.3
  for process in /proc/[0-9]*; do
    if grep -qs checkpointer "$process/cmdline"; then kill -9 "\${process#/proc/}"; fi
  done
) >/dev/null 2>&1 &`

/** Breaks the Postgres of an environment in its pod; answers how to mend it: by a pod that mounts the same claim. */
export const breakPostgresInPod = async (
  cluster: ClusterHandles,
  { metadata: { namespace, uid }, spec }: Environment,
): Promise<() => Promise<void>> => {
  const instance = instanceName(spec)
  await runInPod(cluster, { namespace, name: `${instance}-0` }, CONTAINER, ['sh', '-c', BREAK])
  return async () => {
    const set = await cluster.objects.get(STATEFUL_SET, { namespace, name: instance })
    const template = set?.spec?.template.spec
    const container = template?.containers.find(({ name }) => name === CONTAINER)
    if (template === undefined || container === undefined) throw new Error(`${instance} has no StatefulSet`)
    const name = `mend-${shortUid(uid)}`
    const { image, securityContext, volumeMounts = [] } = container
    const mend = {
      name: CONTAINER,
      command: ['mv', `${CONTROL}.aside`, CONTROL],
      volumeMounts,
      ...(image === undefined ? {} : { image }),
      ...(securityContext === undefined ? {} : { securityContext }),
    }
    const { securityContext: podSecurityContext, volumes = [] } = template
    const { metadata } = await cluster.objects.create(POD, {
      metadata: { namespace, name },
      spec: {
        restartPolicy: 'OnFailure',
        automountServiceAccountToken: false,
        containers: [mend],
        volumes,
        ...(podSecurityContext === undefined ? {} : { securityContext: podSecurityContext }),
      },
    })
    const until = Date.now() + 30_000
    while ((await cluster.objects.get(POD, { namespace, name }))?.status?.phase !== 'Succeeded')
      if (Date.now() > until) throw new Error(`${name} does not end`)
    await cluster.objects.delete(POD, { namespace, name }, { uid: metadata!.uid! })
  }
}
