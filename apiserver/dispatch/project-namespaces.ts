/** The port to the namespaces of projects, where there are such things: on the single box a namespace is a mere name. */

/** A project, and the namespace that is its own. */
export interface ProjectPlace {
  readonly organizationId: string
  readonly projectId: string
  readonly namespace: string
}

/** What became of a namespace whose project was deleted; `kept`: why it is still there. */
export type NamespaceRemoval = 'removed' | 'absent' | { readonly kept: string }

export interface ProjectNamespaces {
  /**
   * Makes sure that the namespace is there and says whose it is.
   * @throws ForeignNamespaceError; NamespaceGoingError; StoreError what the cluster answered
   */
  ensure(project: ProjectPlace): Promise<void>
  /** What was ensured may be gone: looks again the next time. */
  doubt(namespace: string): void
  /**
   * Removes the namespace of a deleted project, if it says that it is that and nothing is in it that anybody could miss.
   * @throws StoreError what the cluster answered
   */
  remove(project: ProjectPlace): Promise<NamespaceRemoval>
}

/** The namespace belongs to somebody else: no attempt makes sense before a cluster admin changes that. */
export class ForeignNamespaceError extends Error {
  constructor(namespace: string, label: string, value: string) {
    super(`The namespace "${namespace}" is not this project's: it has no label ${label}=${value}`)
    this.name = 'ForeignNamespaceError'
  }
}

/** The namespace is being deleted; once it is gone it can be made anew. */
export class NamespaceGoingError extends Error {
  constructor(namespace: string) {
    super(`The namespace "${namespace}" is being deleted`)
    this.name = 'NamespaceGoingError'
  }
}
