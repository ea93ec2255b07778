/** Charts as they come out for values, and what is asked of every object in them. */
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubernetesObject } from '../../runtime/kubernetes/kubernetes-object.ts'
import type { Helm } from '../../testkit/kubernetes/helm.ts'

export interface Rendered extends KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: NonNullable<KubernetesObject['metadata']> & { readonly name: string }
}

export const chartPath = (chart: string): string => join(import.meta.dirname, '..', chart)

/** The objects of a multi-document text. @throws Error for what is no YAML */
export const objectsIn = (text: string): readonly Rendered[] =>
  parseAllDocuments(text).flatMap(document => {
    if ('errors' in document) for (const error of document.errors) throw error
    const object = 'toJSON' in document ? (document.toJSON() as Rendered | null) : null
    return object === null ? [] : [object]
  })

/** What every installation has to say: with the built-in login nothing else. */
export const BUILTIN_LOGIN = ['--set', 'apiServer.settings.SERVICE_AUTH_MODE=builtin'] as const

/** `helm template` of a chart; `args` are flags such as --set, without which the login is the built-in one. */
export const rendered = async (
  helm: Helm,
  chart: string,
  namespace: string,
  args: readonly string[] = [],
): Promise<readonly Rendered[]> =>
  objectsIn(
    await helm.must([
      ...['template', 'svc', chartPath(chart), '--namespace', namespace],
      ...(chart === 'svc-platform' ? BUILTIN_LOGIN : []),
      ...args,
    ]),
  )

/** The same name for the same object, whatever its version. */
export const identity = ({ kind, metadata }: Rendered): string =>
  `${kind}/${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`
