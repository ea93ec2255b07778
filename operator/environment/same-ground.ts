/**
 * Writes about an Environment that were decided on what it was. Others write beside us all the time (annotations of tools, other
 * fields): only where something changed that counts for a decision is the write refused, and decided anew. Else a busy neighbour
 * could keep an environment from ever getting on.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { GROUP } from '../../crds/metadata.ts'
import { keyOf } from '../../lib/model/resource.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { isStoreError } from '../../runtime/store/store-error.ts'

/** Which version of which resource a write is about. */
export interface Ground {
  readonly uid: string
  readonly resourceVersion: string
}

const ATTEMPTS = 8

/**
 * Makes a write on the condition that what was judged is still so.
 * @throws StoreError `Conflict` when something that counts changed since, or nobody gets a word in
 */
export const onSameGround = async <T>(
  store: Pick<ResourceStore, 'get'>,
  judged: Environment,
  write: (ground: Ground) => Promise<T>,
): Promise<T> => {
  let current = judged
  for (let attempt = 1; ; attempt++)
    try {
      const { uid, resourceVersion } = current.metadata
      return await write({ uid, resourceVersion })
    } catch (error) {
      if (!isStoreError(error, 'Conflict') || attempt === ATTEMPTS) throw error
      const found = await store.get(environmentType, keyOf(judged))
      if (found === undefined || !isSameGround(judged, found)) throw error
      current = found
    }
}

/** Whether everything is equal that a decision may rest on. */
const isSameGround = (a: Environment, b: Environment): boolean => isDeepStrictEqual(groundOf(a), groundOf(b))

const groundOf = ({ metadata, spec, status }: Environment): unknown => {
  const { uid, generation, deletionTimestamp, finalizers, labels, annotations } = metadata
  return {
    uid,
    generation,
    deletionTimestamp,
    finalizers,
    labels: ours(labels),
    annotations: ours(annotations),
    spec,
    status,
  }
}

const ours = (words: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(words).filter(([name]) => name.startsWith(`${GROUP}/`)))
