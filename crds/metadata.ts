/** Group, version, and every label, annotation and finalizer of ours. Nothing else spells them out. */
import { createHash } from 'node:crypto'
import { type EnvironmentPath, environmentName } from '../lib/model/identifiers.ts'

export const GROUP = 'svc.internal'
export const VERSION = 'v1alpha1'
export const API_VERSION = `${GROUP}/${VERSION}`

export const LABELS = {
  organization: `${GROUP}/organization`,
  project: `${GROUP}/project`,
  environment: `${GROUP}/environment`,
  /** On a namespace: it holds protected environments or retained data, and admission refuses its deletion. */
  protected: `${GROUP}/protected`,
  /** On everything that belongs to one environment's instance: its uid. */
  uid: `${GROUP}/uid`,
  /** On a claim and a volume whose data outlives its environment. */
  retained: `${GROUP}/retained`,
  /** On the pod of an instance: the kind of its environment, by which an admin exposes some and not others. */
  kind: `${GROUP}/kind`,
  managedBy: 'app.kubernetes.io/managed-by',
  app: 'app.kubernetes.io/name',
} as const

/** The value of `LABELS.managedBy` on what the operator makes. */
export const OPERATOR = 'svc-operator'
/** The value of `LABELS.app` on what makes up a Postgres. */
export const POSTGRES_APP = 'svc-postgres'

export const ANNOTATIONS = {
  /** "true" stops reconciling; deletion is still honoured. */
  paused: `${GROUP}/paused`,
  /** The audit actor on whose behalf the API server made or last changed the resource. */
  actor: `${GROUP}/actor`,
  /** The number of the API server's last intent that was written here: tells a repeated dispatch from a first one. */
  intent: `${GROUP}/intent`,
  /** "true" on one of our resource definitions lets it be deleted, and with it every object of its kind. */
  allowDeletion: `${GROUP}/allow-deletion`,
  /** On what belongs to an instance: the Environment's name, which may be longer than a label holds. */
  resource: `${GROUP}/resource`,
  /** On a StatefulSet: what the operator was last asked for, as JSON. */
  wanted: `${GROUP}/wanted`,
  /** On a pod: the figures that it was started with, as JSON. A pod with others than are wanted is restarted. */
  figures: `${GROUP}/figures`,
  /** "true" on a claim whose data was once served: it is never initialized again. */
  initialized: `${GROUP}/initialized`,
  /** On a claim and its volume: what is to become of the data. */
  deletionPolicy: `${GROUP}/deletion-policy`,
  /** On a claim: where its data came from. */
  lineage: `${GROUP}/lineage`,
  /** On a claim: how its last server stopped, `clean` or `unclean`. */
  lastStop: `${GROUP}/last-stop`,
  /** On a claim and a volume whose data outlives its environment: until when it is kept at least. */
  retainedUntil: `${GROUP}/retained-until`,
  /** "true" on a claim that goes with its namespace, its environment being gone already: its volume goes too. */
  abandoned: `${GROUP}/abandoned`,
  /** On a Service: the name from outside the cluster that the server behind it was seen to prove. */
  provenHost: `${GROUP}/proven-host`,
  /** "accepted" on the Secret of the operator's authority: a new one may take its place, and every server is restarted. */
  newAuthority: `${GROUP}/new-authority`,
} as const

/** Held by the operator on every Environment until its data is dealt with and a DeletionRecord is written. */
export const ENVIRONMENT_FINALIZER = `${GROUP}/environment`

/** Held on a pod that is being stopped until the operator has read its exit code. */
export const STOP_WITNESS_FINALIZER = `${GROUP}/stop-witness`

const hexDigest = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length)

/** An id as a label value: as it is up to 63 characters, else cut and hashed (a label holds no more). */
export const labelValue = (id: string): string => (id.length <= 63 ? id : `${id.slice(0, 46)}-${hexDigest(id, 16)}`)

/** The labels that the API server puts on an Environment. */
export const environmentLabels = (path: EnvironmentPath): Record<string, string> => ({
  [LABELS.organization]: labelValue(path.organizationId),
  [LABELS.project]: labelValue(path.projectId),
  [LABELS.environment]: labelValue(path.environmentId),
})

const slug = (text: string, length: number): string => text.slice(0, length).replace(/-+$/, '')

/** The namespace of a project: `svc-<slug>-<hash>`, at most 63 characters, unique by the hash. */
export const projectNamespace = (organizationId: string, projectId: string): string =>
  `svc-${slug(`${organizationId}-${projectId}`, 40)}-${hexDigest(`${organizationId}/${projectId}`, 10)}`

/** The name of an environment's children: `<slug>-<hash>-1`, at most 52 characters. */
export const instanceName = (path: EnvironmentPath): string =>
  `${slug(path.environmentId, 36)}-${hexDigest(environmentName(path), 10)}-1`

/** The eight characters of a uid that data folders, sockets, credentials and trash carry. */
export const shortUid = (uid: string): string => uid.replaceAll('-', '').slice(0, 8)
