/** Paths of the API server: how they are built and what they are about. */

/** Where a kind is served. */
export interface ServedType {
  /** `v1`, `apps/v1`, … */
  readonly apiVersion: string
  readonly plural: string
}

const part = encodeURIComponent

/** The path of a kind's objects; without a namespace, of all of them (or of a cluster-scoped kind's). */
export const collectionPath = ({ apiVersion, plural }: ServedType, namespace?: string): string =>
  [
    apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`,
    ...(namespace === undefined || namespace === '' ? [] : [`namespaces/${part(namespace)}`]),
    plural,
  ].join('/')

/** The path of one object, or of a subresource of it. */
export const objectPath = (
  type: ServedType,
  key: { readonly namespace: string; readonly name: string },
  subresource?: string,
): string =>
  [collectionPath(type, key.namespace), part(key.name), ...(subresource === undefined ? [] : [subresource])].join('/')

/** A label selector: all must be equal. undefined for none. */
export const labelSelector = (labels: Readonly<Record<string, string>> | undefined): string | undefined => {
  const pairs = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`)
  return pairs.length === 0 ? undefined : pairs.join(',')
}

/** The plural that a path is about, such as `pods`; `other` for what is no object's path. For metrics: few values. */
export const resourceOf = (path: string): string => {
  const [root, ...rest] = path.split('/').slice(1)
  if (root !== 'api' && root !== 'apis') return 'other'
  const [first, second, third] = rest.slice(root === 'api' ? 1 : 2)
  // /namespaces/x is a namespace, /namespaces/x/pods are pods.
  return (first === 'namespaces' && second !== undefined && third !== undefined ? third : first) ?? 'other'
}
