import { environmentType } from '../../crds/environment-type.ts'
import { LABELS, labelValue } from '../../crds/metadata.ts'
import { namespaces } from '../../runtime/kubernetes/core-kinds.ts'
import type { KubernetesObject, KubernetesObjects, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'
import {
  ForeignNamespaceError,
  NamespaceGoingError,
  type NamespaceRemoval,
  type ProjectNamespaces,
  type ProjectPlace,
} from './project-namespaces.ts'

const CLAIMS: ObjectType = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims' }

/** What says whose a namespace is; the operator works nowhere else. */
const ownersOf = ({ organizationId, projectId }: ProjectPlace): Readonly<Record<string, string>> => ({
  [LABELS.organization]: labelValue(organizationId),
  [LABELS.project]: labelValue(projectId),
})

/** Every pod in it is held to the restricted profile, whoever makes it. */
const POD_SECURITY = {
  'pod-security.kubernetes.io/enforce': 'restricted',
  'pod-security.kubernetes.io/warn': 'restricted',
  'pod-security.kubernetes.io/audit': 'restricted',
}

/** Namespaces of a cluster, one a project. What was ensured once is not asked for again, until it is doubted. */
export const kubernetesProjectNamespaces = (objects: KubernetesObjects): ProjectNamespaces => {
  const ensured = new Set<string>()
  const find = (name: string): Promise<KubernetesObject | undefined> => objects.get(namespaces, { namespace: '', name })

  const findOrMake = async (project: ProjectPlace): Promise<KubernetesObject> => {
    const found = await find(project.namespace)
    if (found !== undefined) return found
    const labels = { ...ownersOf(project), ...POD_SECURITY, 'app.kubernetes.io/managed-by': 'svc-apiserver' }
    try {
      return await objects.create(namespaces, { metadata: { name: project.namespace, labels } })
    } catch (error) {
      const other = isStoreError(error, 'AlreadyExists') ? await find(project.namespace) : undefined
      if (other === undefined) throw error
      return other
    }
  }

  /** Why it must stay; undefined: nothing is in it. */
  const contentOf = async (namespace: string): Promise<string | undefined> => {
    const claims = await objects.list(CLAIMS, { namespace })
    if (claims.items.length > 0) return `${claims.items.length} claims with data are in it`
    const { apiVersion, kind, plural } = environmentType
    const environments = await objects.list({ apiVersion, kind, plural }, { namespace })
    return environments.items.length === 0 ? undefined : `${environments.items.length} Environments are in it`
  }

  return {
    ensure: async project => {
      if (ensured.has(project.namespace)) return
      const found = await findOrMake(project)
      if (found.metadata?.deletionTimestamp !== undefined) throw new NamespaceGoingError(project.namespace)
      for (const [label, value] of Object.entries(ownersOf(project)))
        if (found.metadata?.labels?.[label] !== value) throw new ForeignNamespaceError(project.namespace, label, value)
      ensured.add(project.namespace)
    },
    doubt: namespace => {
      ensured.delete(namespace)
    },
    remove: async (project): Promise<NamespaceRemoval> => {
      ensured.delete(project.namespace)
      const found = await find(project.namespace)
      if (found?.metadata?.uid === undefined || found.metadata.deletionTimestamp !== undefined) return 'absent'
      const { labels = {}, uid, resourceVersion } = found.metadata
      if (Object.entries(ownersOf(project)).some(([label, value]) => labels[label] !== value))
        return { kept: 'its labels say that it is not this project’s' }
      const content = await contentOf(project.namespace)
      if (content !== undefined) return { kept: content }
      await objects.delete(
        namespaces,
        { namespace: '', name: project.namespace },
        { uid, ...(resourceVersion !== undefined && { resourceVersion }) },
      )
      return 'removed'
    },
  }
}
