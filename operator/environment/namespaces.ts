import { LABELS } from '../../crds/metadata.ts'

/** What is known of a namespace. */
export interface NamespaceFacts {
  readonly labels: Readonly<Record<string, string>>
  /** It is being deleted: nothing can be made in it any more. */
  readonly terminating: boolean
}

/** The port to namespaces, where there are such things. */
export interface Namespaces {
  /** undefined: it is not there. `fresh`: asked of the store itself, where a cache would otherwise answer. */
  look(namespace: string, options?: { readonly fresh?: boolean }): Promise<NamespaceFacts | undefined>
  /** Calls back with a namespace whose labels changed or whose deletion began; returns how to stop. */
  onChange(listener: (namespace: string) => void): () => void
}

/** A namespace that is not there says of nobody that it is theirs. */
export const NOWHERE: NamespaceFacts = { labels: {}, terminating: false }

/** Whether it says that it is a project's: in any other nothing of ours is made. */
export const isOfProject = ({ labels }: NamespaceFacts): boolean =>
  LABELS.organization in labels && LABELS.project in labels
