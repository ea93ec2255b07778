/** The one way in which an object is applied: only where it is not there, or not as it should be. */
import { hasDrifted } from './drift.ts'
import type { KubernetesObject } from './kubernetes-object.ts'

/** What an object was before it was as it should be: that already, not there, or something else. */
export type Settled = 'as it was' | 'made' | 'put right'

/** @param live as it is to the best of our knowledge @throws whatever `apply` throws */
export const settleObject = async <O extends KubernetesObject>(
  wish: O,
  live: KubernetesObject | undefined,
  apply: (wish: O) => Promise<unknown>,
): Promise<Settled> => {
  if (live !== undefined && !hasDrifted(wish, live)) return 'as it was'
  await apply(wish)
  return live === undefined ? 'made' : 'put right'
}
