import { environmentType } from '../../crds/environment-type.ts'
import { GROUP } from '../../crds/metadata.ts'
import type { KubernetesObjects, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'

const DEFINITIONS: ObjectType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  clusterScoped: true,
}

/**
 * Whether Environments are here to stay: when their definition is being removed, every one of them is deleted with it, and
 * nobody asked for the data to go.
 */
export const kindLives = async (objects: Pick<KubernetesObjects, 'get'>): Promise<boolean> => {
  const name = `${environmentType.plural}.${GROUP}`
  const definition = await objects.get(DEFINITIONS, { namespace: '', name })
  return definition?.metadata !== undefined && definition.metadata.deletionTimestamp === undefined
}
