import { isStoreError } from '../../runtime/store/store-error.ts'
import { ConditionError } from './host.ts'

/** Reason of a condition: a webhook, a policy or a quota of the cluster refuses something that an environment needs. */
export const WRITE_REFUSED = 'WriteRefused'

const ABOUT: Readonly<Record<string, ConditionError['condition']>> = {
  PersistentVolumeClaim: 'StorageReady',
  PersistentVolume: 'StorageReady',
  Secret: 'CredentialsReady',
}

/**
 * What people should be told of a write that a webhook, a policy or a quota of the cluster refused: only they can do something
 * about it. Anything else is returned as it is.
 */
export const toldRefusal = (error: unknown): unknown => {
  if (!isStoreError(error) || error.refusal?.object === undefined) return error
  const { by, words, object } = error.refusal
  const { kind, name } = object
  // Whoever refuses a Secret may quote it.
  const quoted = words === undefined || kind === 'Secret' ? '' : `: ${words}`
  const message = `The cluster refuses ${kind} ${name}, ${by}${quoted}`
  return new ConditionError(ABOUT[kind] ?? 'DatabaseReachable', WRITE_REFUSED, message, error)
}
