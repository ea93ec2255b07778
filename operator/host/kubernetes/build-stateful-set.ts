/** The StatefulSet of an instance: replicas 0 or 1, restarted by the operator alone. Pure. */

import type { V1Container, V1PodSpec, V1PodTemplateSpec, V1Volume } from '@kubernetes/client-node'
import { ANNOTATIONS, LABELS } from '../../../crds/metadata.ts'
import { POSTGRES_PORT } from '../../../lib/model/environment.ts'
import { milliCores } from '../../../lib/model/quantity.ts'
import { NEW_DATA } from './build-files-secret.ts'
import { SERVICE_ACCOUNT } from './build-project-objects.ts'
import type { KubernetesHostSettings } from './host-settings.ts'
import type { InstanceNames } from './instance-names.ts'
import type { StatefulSet } from './object-types.ts'
import { figuresText, type Wanted, wantedText } from './wanted.ts'

/** Where the image unpacks a cluster; the volume is mounted one folder above. */
const VOLUME_PATH = '/var/lib/postgresql/data'
/** Where the server finds its certificate, its key and its settings that a reload changes. */
export const FILES_PATH = '/etc/svc'
const UID = 999

/** Crash recovery may take this long before anybody takes the server for dead. */
const STARTUP_SECONDS = 3600

export const buildStatefulSet = (
  names: InstanceNames,
  wanted: Wanted,
  /** Settings that are read at start only. */
  startSettings: Readonly<Record<string, string>>,
  settings: KubernetesHostSettings,
): StatefulSet => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: {
    name: names.name,
    namespace: names.namespace,
    labels: names.labels,
    annotations: { ...names.annotations, [ANNOTATIONS.wanted]: wantedText(wanted) },
    ownerReferences: [names.owner],
  },
  spec: {
    replicas: wanted.running ? 1 : 0,
    revisionHistoryLimit: 0,
    // Only the operator knows when a restart is due.
    updateStrategy: { type: 'OnDelete' },
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    serviceName: names.name,
    selector: { matchLabels: names.selector },
    template: template(names, wanted, startSettings, settings),
  },
})

/** What a pod is found by: as an instance's, and as one of its kind. */
export const podLabels = (names: InstanceNames, { spec }: Wanted): Readonly<Record<string, string>> => ({
  ...names.labels,
  [LABELS.kind]: spec.kind,
})

const template = (
  names: InstanceNames,
  wanted: Wanted,
  startSettings: Readonly<Record<string, string>>,
  settings: KubernetesHostSettings,
): V1PodTemplateSpec => ({
  metadata: {
    labels: podLabels(names, wanted),
    annotations: { ...names.annotations, [ANNOTATIONS.figures]: figuresText(wanted.spec) },
  },
  spec: {
    ...settings.placement[wanted.spec.kind],
    ...podRules(settings.graceSeconds[wanted.spec.kind]),
    ...(settings.imagePullSecrets.length === 0
      ? {}
      : { imagePullSecrets: settings.imagePullSecrets.map(name => ({ name })) }),
    containers: [container(names, wanted, startSettings, settings)],
    volumes: podVolumes(names),
  },
})

/** Restricted Pod Security, and nothing of the cluster in the pod that Postgres has no use for. */
const podRules = (graceSeconds: number): Omit<V1PodSpec, 'containers'> => ({
  serviceAccountName: SERVICE_ACCOUNT,
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  terminationGracePeriodSeconds: graceSeconds,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: UID,
    runAsGroup: UID,
    fsGroup: UID,
    // Postgres refuses a data folder that its group may write.
    fsGroupChangePolicy: 'OnRootMismatch',
    seccompProfile: { type: 'RuntimeDefault' },
  },
})

const container = (
  names: InstanceNames,
  { spec }: Wanted,
  startSettings: Readonly<Record<string, string>>,
  { imagePullPolicy, requestShare, graceSeconds }: KubernetesHostSettings,
): V1Container => ({
  name: 'postgres',
  image: spec.image,
  imagePullPolicy,
  args: Object.entries(startSettings).flatMap(([name, value]) => ['-c', literal(`${name}=${value}`)]),
  // Read at each start of the container. Not told by the template: that would be written anew once the server has answered.
  env: [{ name: 'SVC_NEW_DATA', valueFrom: { secretKeyRef: { name: names.files, key: NEW_DATA, optional: true } } }],
  ports: [{ name: 'postgres', containerPort: POSTGRES_PORT, protocol: 'TCP' }],
  resources: {
    limits: { cpu: spec.cpu, memory: String(spec.memoryBytes) },
    requests: {
      cpu: `${Math.max(1, Math.round(milliCores(spec.cpu) * requestShare.cpu))}m`,
      memory: String(Math.round(spec.memoryBytes * requestShare.memory)),
    },
  },
  // Kubelet's clock starts with the container; from a crash Postgres may recover for long, and is then neither ready nor dead.
  startupProbe: probe('ready', { periodSeconds: 1, timeoutSeconds: 4, failureThreshold: STARTUP_SECONDS }),
  readinessProbe: probe('ready', { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 }),
  // Five minutes without a word. One that recovers, or has no connection left, still speaks.
  livenessProbe: probe('alive', { periodSeconds: 30, timeoutSeconds: 10, failureThreshold: 10 }),
  lifecycle: {
    preStop: {
      exec: { command: ['svc-probe', 'checkpoint', String(Math.floor(graceSeconds[spec.kind] / 2))] },
    },
  },
  securityContext: {
    allowPrivilegeEscalation: false,
    privileged: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
  // Why it ended: its last lines, where it wrote no message of its own.
  terminationMessagePolicy: 'FallbackToLogsOnError',
  volumeMounts: [
    { name: 'data', mountPath: VOLUME_PATH },
    { name: 'files', mountPath: FILES_PATH, readOnly: true },
    { name: 'run', mountPath: '/run/postgresql' },
    { name: 'tmp', mountPath: '/tmp' },
  ],
})

const probe = (
  question: 'ready' | 'alive',
  pace: { readonly periodSeconds: number; readonly timeoutSeconds: number; readonly failureThreshold: number },
): NonNullable<V1Container['startupProbe']> => ({ exec: { command: ['svc-probe', question] }, ...pace })

const podVolumes = (names: InstanceNames): V1Volume[] => [
  { name: 'data', persistentVolumeClaim: { claimName: names.claim } },
  // Postgres takes a key that root owns if at most its group may read it.
  { name: 'files', secret: { secretName: names.files, defaultMode: 0o440 } },
  { name: 'run', emptyDir: { sizeLimit: '1Mi' } },
  { name: 'tmp', emptyDir: { sizeLimit: '64Mi' } },
]

/** Kubernetes replaces $(NAME) in arguments; a doubled $ stands for itself. */
const literal = (text: string): string => text.replaceAll('$', '$$$$')
