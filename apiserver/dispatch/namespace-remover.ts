/**
 * Removes the namespaces of deleted projects, while its process holds the lease. The wish stands in the project's row, so
 * a crash forgets none; a project that is put again meanwhile waits for the row and takes the wish back.
 */
import type { Log } from '../../runtime/log/log.ts'
import { type FencedTransactions, LeaseLostError } from '../store/fenced-transactions.ts'
import { lockLeavingProject, markNamespaceSettled } from '../store/projects.ts'
import type { ProjectNamespaces } from './project-namespaces.ts'

const EVERY_MS = 5_000

export interface NamespaceRemoverOptions {
  readonly namespaces: ProjectNamespaces
  readonly fenced: FencedTransactions
  readonly leads: () => boolean
  readonly log: Log
  readonly everyMs?: number
}

/** Looks at once and then every few seconds. @returns how to stop; resolves once nothing of it runs */
export const startNamespaceRemover = (options: NamespaceRemoverOptions): (() => Promise<void>) => {
  const { log, everyMs = EVERY_MS } = options
  let looking: Promise<void> | undefined
  let stopped = false
  const look = async (): Promise<void> => {
    try {
      // One that cannot be removed keeps none of the others waiting.
      const failed: string[] = []
      while (!stopped && (await removeOne(options, failed)));
    } catch (error) {
      if (!(error instanceof LeaseLostError))
        log.warn({ err: error }, 'The namespaces of deleted projects could not be looked at; it is tried again')
    }
  }
  const begin = (): void => {
    looking ??= look().finally(() => (looking = undefined))
  }
  begin()
  const timer = setInterval(begin, everyMs)
  return async () => {
    stopped = true
    clearInterval(timer)
    await looking
  }
}

/** @returns whether there may be more; what failed is added to `failed`. The row stays locked until the cluster has answered: nobody makes it anew meanwhile. */
const removeOne = ({ namespaces, fenced, leads, log }: NamespaceRemoverOptions, failed: string[]): Promise<boolean> =>
  fenced(async sql => {
    const project = await lockLeavingProject(sql, failed)
    if (project === undefined || !leads()) return false
    const removal = await namespaces.remove(project).catch((error: unknown) => {
      failed.push(project.namespace)
      log.warn({ ...project, err: error }, 'The namespace of a deleted project could not be removed; it is tried again')
      return undefined
    })
    if (removal === undefined) return true
    await markNamespaceSettled(sql, project.organizationId, project.projectId)
    if (removal === 'removed') log.info({ ...project }, 'Removed the namespace of a deleted project')
    else if (removal !== 'absent')
      log.warn({ ...project, why: removal.kept }, 'The namespace of a deleted project stays')
    return true
  })
