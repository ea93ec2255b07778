import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { bindStore } from '../store/bound-store.ts'
import type { ControlPlaneSql } from '../store/fenced-transactions.ts'

/**
 * Refuses a store that is not the one these rows are about. Folding it would record every environment as deleted, because
 * none is there, while all of them are somewhere else.
 * @throws Error that says what to do
 */
export const assertBoundStore = async (database: ControlPlaneSql, store: ResourceStore): Promise<void> => {
  const identity = await store.identity()
  const bound = await database.transaction(sql => bindStore(sql, identity))
  if (bound !== identity)
    throw new Error(
      `The environments of this control plane live in resource store ${bound}, but ${identity} was given: nothing is ` +
        'folded or dispatched until SERVICE_STORE and SERVICE_STORE_URL (or the kubeconfig) name that store again, or the store is restored from its backup',
    )
}
