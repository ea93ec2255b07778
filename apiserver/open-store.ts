/** Opens the place where resources and passwords are: the embedded store in a Postgres, or a Kubernetes cluster. */
import type { Registry } from 'prom-client'
import { credentialSecrets } from '../crds/credential-secrets.ts'
import type { MasterKeys } from '../lib/credentials/seal.ts'
import { ConfigError } from '../runtime/config/parse-env.ts'
import { type BackoffPolicy, QUICK_RECONNECT_BACKOFF } from '../runtime/controller/backoff.ts'
import type { Credentials } from '../runtime/credentials/credentials.ts'
import { migrateEmbeddedStore } from '../runtime/embedded/embedded-migrations.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { SealedCredentials } from '../runtime/embedded/sealed-credentials.ts'
import { KubernetesCredentials } from '../runtime/kubernetes/kubernetes-credentials.ts'
import { kubernetesObjects } from '../runtime/kubernetes/kubernetes-objects.ts'
import { KubernetesResourceStore } from '../runtime/kubernetes/kubernetes-resource-store.ts'
import { openKubernetesApi } from '../runtime/kubernetes/open-kubernetes-api.ts'
import type { Log } from '../runtime/log/log.ts'
import type { ResourceStore } from '../runtime/store/resource-store.ts'
import { VERSION } from './contract/openapi.ts'
import { kubernetesProjectNamespaces } from './dispatch/kubernetes-project-namespaces.ts'
import type { ProjectNamespaces } from './dispatch/project-namespaces.ts'

const CLIENT_NAME = 'svc-apiserver'

/** Which store: the embedded one in the database of a URL, or a cluster's. */
export type StorePlace = { readonly kind: 'embedded'; readonly url: string } | { readonly kind: 'kubernetes' }

/** @throws ConfigError */
export const storePlace = (env: {
  readonly SERVICE_STORE: StorePlace['kind']
  readonly SERVICE_STORE_URL?: string | undefined
}): StorePlace => {
  const { SERVICE_STORE: kind, SERVICE_STORE_URL: url } = env
  if (kind === 'kubernetes') return { kind }
  if (url !== undefined) return { kind, url }
  throw new ConfigError('Cannot use SERVICE_STORE_URL: it must be set, unless SERVICE_STORE is kubernetes')
}

interface StoreSettings {
  readonly masterKeys: MasterKeys
  readonly log: Log
  readonly registry: Registry
}

export interface OpenedStore {
  readonly store: ResourceStore
  readonly credentials: Credentials
  readonly projectNamespaces?: ProjectNamespaces
  /** How hastily it is reached again. */
  readonly reconnect?: BackoffPolicy
  readonly close: () => Promise<void>
}

/** @throws whatever the store meets when it is opened */
export const openStore = (place: StorePlace, settings: StoreSettings): Promise<OpenedStore> =>
  place.kind === 'kubernetes' ? openKubernetes(settings) : openEmbedded(place.url, settings)

const openEmbedded = async (url: string, { masterKeys, log, registry }: StoreSettings): Promise<OpenedStore> => {
  await migrateEmbeddedStore(url, log)
  await using opened = new AsyncDisposableStack()
  const store = new EmbeddedResourceStore({ url, clientName: CLIENT_NAME, log, registry })
  opened.defer(() => store.close())
  const credentials = await SealedCredentials.open({ url, clientName: CLIENT_NAME, masterKeys })
  opened.defer(() => credentials.close())
  const kept = opened.move()
  return { store, credentials, reconnect: QUICK_RECONNECT_BACKOFF, close: () => kept.disposeAsync() }
}

const openKubernetes = async ({ registry }: StoreSettings): Promise<OpenedStore> => {
  const { api } = await openKubernetesApi({ name: CLIENT_NAME, version: VERSION, registry })
  const objects = kubernetesObjects(api, CLIENT_NAME)
  return {
    store: new KubernetesResourceStore(api, CLIENT_NAME),
    credentials: new KubernetesCredentials(objects, credentialSecrets),
    projectNamespaces: kubernetesProjectNamespaces(objects),
    close: () => api.close(),
  }
}
