/** A host on the cluster with a node, a namespace of its own, and what tests do to it from the side. */
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { ANNOTATIONS, API_VERSION, environmentLabels, LABELS } from '../../crds/metadata.ts'
import { POSTGRES_PORT } from '../../lib/model/environment.ts'
import type { InstanceRef, ObservedInstance } from '../../operator/host/host.ts'
import { DEFAULT_HOST_SETTINGS, type KubernetesHostSettings } from '../../operator/host/kubernetes/host-settings.ts'
import { instanceNames } from '../../operator/host/kubernetes/instance-names.ts'
import { type KubernetesHost, openKubernetesHost } from '../../operator/host/kubernetes/kubernetes-host.ts'
import {
  claims,
  type Pod,
  pods,
  secrets,
  services,
  statefulSets,
  volumes,
} from '../../operator/host/kubernetes/object-types.ts'
import type { CredentialSet } from '../../runtime/credentials/credentials.ts'
import type { KubernetesObjects, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { kubernetesObjects } from '../../runtime/kubernetes/kubernetes-objects.ts'
import { silentLog } from '../../runtime/log/log.ts'
import { atEnd } from '../at-end.ts'
import { TEST_CREDENTIALS, TEST_SPEC, untilState } from '../local-host.ts'
import { nodeCluster, type TestCluster } from './cluster.ts'
import { kubectlOn } from './kubectl.ts'

/** Where a host's tests play. */
export interface HostScene {
  readonly cluster: TestCluster
  /** For environments: labelled as a project's, under restricted Pod Security. */
  readonly namespace: string
  readonly settings: KubernetesHostSettings
  /** A host that follows the cluster and keeps its instances. */
  open(changes?: {
    readonly objects?: KubernetesObjects
    readonly settings?: KubernetesHostSettings
  }): Promise<KubernetesHost>
  /** An instance whose Environment is there, so that what it owns is not collected. */
  place(environmentId?: string): Promise<InstanceRef>
  podOf(ref: InstanceRef): Promise<Pod | undefined>
  /** Ends every pod of it, for the ones after it need the node's room; call it when no host of it is at work any more. */
  close(): Promise<void>
  kubectl: ReturnType<typeof kubectlOn>['must']
}

const PATH = { organizationId: 'acme', projectId: 'app' }

export const hostScene = async (room: string, changes: Partial<KubernetesHostSettings> = {}): Promise<HostScene> => {
  const cluster = await nodeCluster()
  await cluster.installKinds()
  const { [LABELS.environment]: _, ...project } = environmentLabels({ ...PATH, environmentId: 'none' })
  const namespace = await cluster.namespace(room, { ...project, 'pod-security.kubernetes.io/enforce': 'restricted' })
  const operatorNamespace = await cluster.namespace(`${room}-system`)
  // Another operator may be at work on the cluster: it sees nothing of ours.
  const settings = { ...DEFAULT_HOST_SETTINGS, operatorNamespace, managedBy: namespace, ...changes }
  const { objects } = cluster
  atEnd(() => dropVolumes(objects, namespace))
  return {
    cluster,
    namespace,
    settings,
    open: async ({ objects: given, settings: others = settings } = {}) => {
      const api = await cluster.open('svc-operator')
      const host = openKubernetesHost({
        api,
        objects: given ?? kubernetesObjects(api, 'svc-operator'),
        settings: others,
        log: silentLog,
      })
      await host.watch()
      host.keep()
      return host
    },
    place: async (environmentId = `e-${randomUUID().slice(0, 8)}`) => {
      const path = { ...PATH, environmentId }
      const name = `acme.app.${environmentId}`
      const base = `/apis/${API_VERSION}/namespaces/${namespace}/environments`
      // An id that is used again: its former resource goes first.
      const former = await cluster.api
        .call<{ metadata: { uid: string } }>({ method: 'GET', path: `${base}/${name}` })
        .catch(() => undefined)
      if (former !== undefined) await cluster.api.call({ method: 'DELETE', path: `${base}/${name}` })
      const made = await cluster.api.call<{ metadata: { uid: string } }>({
        method: 'POST',
        path: base,
        body: {
          apiVersion: API_VERSION,
          kind: 'Environment',
          metadata: { name, annotations: { [ANNOTATIONS.paused]: 'true' } },
          spec: { ...path, kind: 'preview', suspended: true },
        },
      })
      return { key: { namespace, name }, uid: made.metadata.uid, path }
    },
    podOf: ref => objects.get(pods, { namespace, name: instanceNames(ref).pod }),
    close: async () => {
      const kubectl = kubectlOn(cluster.kubeconfig).must
      const inNamespace = ['-n', namespace, '--all', '--wait=false']
      await kubectl(['delete', 'environments.svc.internal,statefulsets,pods', ...inNamespace])
      // Nobody is left to read how they end.
      for (const { metadata } of (await objects.list(pods, { namespace })).items)
        if (metadata?.finalizers !== undefined)
          await objects.merge(pods, { namespace, name: metadata.name ?? '' }, { metadata: { finalizers: null } })
    },
    kubectl: kubectlOn(cluster.kubeconfig).must,
  }
}

/** Volumes that outlive their claims, as they should, are nobody's after a test. */
const dropVolumes = async (objects: KubernetesObjects, namespace: string): Promise<void> => {
  for (const { metadata, spec } of (await objects.list(volumes)).items)
    if (spec?.claimRef?.namespace === namespace)
      await objects.merge(
        volumes,
        { namespace: '', name: metadata?.name ?? '' },
        { spec: { persistentVolumeReclaimPolicy: 'Delete' } },
      )
}

/** What tells one server from the next: pod and container. undefined: none runs. */
export const processIn = (pod: Pod | undefined): string | undefined => {
  const status = pod?.status?.containerStatuses?.[0]
  return status?.state?.running === undefined ? undefined : `${pod?.metadata?.uid} ${status.containerID}`
}

/** Kills the server of a pod with SIGKILL from the node, which the pod itself cannot: it is process 1 there. */
export const killServer = async (scene: HostScene, ref: InstanceRef): Promise<void> => {
  const found = await serverPids(scene, ref)
  if (found.length > 0) for (const pid of found) process.kill(pid, 'SIGKILL')
  // The node is another machine: an immediate shutdown is as near as one gets.
  else await scene.kubectl(['exec', '-n', scene.namespace, instanceNames(ref).pod, '--', 'sh', '-c', 'kill -QUIT 1'])
}

/** The server's own process as this machine sees it; none where the node is another machine. */
export const serverPids = async (scene: HostScene, ref: InstanceRef): Promise<number[]> => {
  const pod = await scene.podOf(ref)
  const id = pod?.status?.containerStatuses?.[0]?.containerID?.replace(/^.*:\/\//, '')
  if (id === undefined) throw new Error('Cannot find Postgres: it has no container')
  return readdirSync('/proc')
    .filter(entry => /^\d+$/.test(entry) && isFirstOf(entry, id))
    .map(Number)
}

const isFirstOf = (entry: string, containerId: string): boolean => {
  try {
    if (!readFileSync(`/proc/${entry}/cgroup`, 'utf8').includes(containerId)) return false
    return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${entry}/status`, 'utf8'))
  } catch {
    return false // it ended meanwhile
  }
}

/** One statement in the environment's database, through the address of its Service, as a client does it. */
export const queryService = async (
  scene: HostScene,
  host: { caCertificate(): Promise<string> },
  serviceHost: string,
  sign: CredentialSet['app'],
  sql: string,
  database = 'app',
  /** A client certificate; false: no encryption. */
  tls?: { readonly cert: string; readonly key: string } | false,
): Promise<Record<string, unknown>[]> => {
  const [name = ''] = serviceHost.split('.')
  const service = await scene.cluster.objects.get(services, { namespace: scene.namespace, name })
  const client = new pg.Client({
    host: service?.spec?.clusterIP ?? '',
    port: POSTGRES_PORT,
    user: sign.username,
    password: sign.password,
    database,
    ssl: tls !== false && { ca: await host.caCertificate(), servername: serviceHost, ...tls },
    connectionTimeoutMillis: 10_000,
  })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

/** Rows from a claim that is left of an environment, read by a Postgres of the test's own. */
export const queryClaim = async (scene: HostScene, claim: string, sql: string): Promise<Record<string, unknown>[]> => {
  const name = `look-${randomUUID().slice(0, 8)}`
  const mounts = [
    { name: 'data', mountPath: '/var/lib/postgresql/data' },
    { name: 'run', mountPath: '/run/postgresql' },
    { name: 'tmp', mountPath: '/tmp' },
  ]
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: scene.namespace },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 5,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 999,
        runAsGroup: 999,
        fsGroup: 999,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'postgres',
          image: scene.settings.image,
          imagePullPolicy: 'IfNotPresent',
          args: [
            '-c',
            'listen_addresses=',
            '-c',
            'unix_socket_directories=/run/postgresql',
            '-c',
            'max_connections=100',
          ],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: mounts,
        },
      ],
      volumes: [
        { name: 'data', persistentVolumeClaim: { claimName: claim } },
        { name: 'run', emptyDir: {} },
        { name: 'tmp', emptyDir: {} },
      ],
    },
  }
  const { objects } = scene.cluster
  const made = await objects.create(pods, pod)
  const wrapped = `select coalesce(json_agg(q), '[]') from (${sql}) q`
  const psql = [
    'exec',
    '-n',
    scene.namespace,
    name,
    '--',
    'psql',
    '-XAtq',
    '-U',
    'postgres',
    '-d',
    'app',
    '-c',
    wrapped,
  ]
  try {
    for (const end = Date.now() + 60_000; ; ) {
      try {
        return JSON.parse(await scene.kubectl(psql)) as Record<string, unknown>[]
      } catch (error) {
        if (Date.now() > end) throw error
      }
      await sleep(300)
    }
  } finally {
    await objects.delete(pods, { namespace: scene.namespace, name }, { uid: made.metadata?.uid ?? '' })
  }
}

/** Everything in the namespace that carries the instance's uid. */
export const tracesOf = async ({ cluster, namespace }: HostScene, ref: InstanceRef): Promise<string[]> => {
  const selector = { namespace, labels: { [LABELS.uid]: ref.uid } }
  const found: string[] = []
  const types: ObjectType[] = [statefulSets, pods, services, claims, secrets].map(type => ({ ...type, object: {} }))
  for (const type of types)
    for (const { metadata } of (await cluster.objects.list(type, selector)).items)
      found.push(`${type.plural}/${metadata?.name ?? ''}`)
  return found
}

/** Starts an instance, waits until it answers, sets its passwords, has a client sign in. */
export const bringUpOn = async (
  host: KubernetesHost,
  ref: InstanceRef,
  spec = TEST_SPEC,
): Promise<ObservedInstance> => {
  await host.start(ref, spec)
  const observed = await untilState(host, ref, ['running'], SLOWEST_MS)
  await host.applyCredentials(ref, TEST_CREDENTIALS)
  await untilHolds(async () => (await host.signIn(ref, TEST_CREDENTIALS)).result === 'ok')
  return observed
}

/** Longer than anything takes on a busy machine. */
export const SLOWEST_MS = 120_000

/** Asks until it holds. @throws Error when it does not for too long */
export const untilHolds = async (holds: () => Promise<boolean> | boolean, deadlineMs = SLOWEST_MS): Promise<void> => {
  const end = Date.now() + deadlineMs
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`It does not come about within ${deadlineMs} ms: ${String(holds)}`)
    await sleep(50)
  }
}

/** Counts the calls that change something. */
export const counting = (
  objects: KubernetesObjects,
): { readonly objects: KubernetesObjects; readonly calls: string[] } => {
  const calls: string[] = []
  return {
    calls,
    objects: {
      get: (type, key) => objects.get(type, key),
      list: (type, selector) => objects.list(type, selector),
      create: (type, object) => {
        calls.push(`create ${type.kind}`)
        return objects.create(type, object)
      },
      apply: (type, object, manager) => {
        calls.push(`apply ${type.kind}`)
        return objects.apply(type, object, manager)
      },
      merge: (type, key, patch, subresource) => {
        calls.push(`merge ${type.kind}`)
        return objects.merge(type, key, patch, subresource)
      },
      delete: (type, key, options) => {
        calls.push(`delete ${type.kind}`)
        return objects.delete(type, key, options)
      },
    },
  }
}
