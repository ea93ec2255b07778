/**
 * What becomes of an intent, given what stands in the resource store: pure. Asked afresh after every conflict.
 *
 * Only a create may create. Everything else is bound to the uid that the create got, so that an intent that is tried
 * again never touches, let alone resurrects, another life of the same name.
 */
import type { Environment } from '../../crds/environment.ts'
import { ANNOTATIONS } from '../../crds/metadata.ts'
import { ENVIRONMENT_GONE, OVERTAKEN } from '../../lib/model/operation.ts'
import type { PendingIntent } from '../store/pending-intents.ts'

/** What to do next. `uid` is the resource's that the environment is bound to. */
export type IntentDecision =
  | { readonly do: 'create' }
  /** `resourceVersion`: the write must find the resource as it was judged. */
  | { readonly do: 'patch'; readonly uid: string; readonly resourceVersion: string | undefined }
  /** Says who asks for the deletion, then deletes. */
  | { readonly do: 'announceAndDelete'; readonly uid: string }
  | { readonly do: 'delete'; readonly uid: string; readonly generation: number }
  /** The store holds its effect already. */
  | { readonly do: 'done'; readonly uid: string; readonly generation: number | undefined }
  /** The create happened, but a crash came before its uid was noted: note it, then judge again. */
  | { readonly do: 'bind'; readonly uid: string }
  /** A delete of something that was never made. */
  | { readonly do: 'cancelCreate' }
  | { readonly do: 'fail'; readonly error: string }
  /** Not now: something is in the way that will go. */
  | { readonly do: 'wait'; readonly why: string }

/** Why a create failed whose name is taken. */
export const NAME_TAKEN = 'Another resource of this name exists, which was not made through this API'
/** Why a delete failed that deletion protection refused. */
export const PROTECTED = 'deletion_protected: deletion protection is on'

/** Whether a resource was made by the environment's own create. */
const isOwnCreation = (intent: PendingIntent, current: Environment): boolean =>
  intent.createOperationId !== null && current.spec.request?.id === intent.createOperationId

/** Whether an earlier attempt of this very intent is seen in the resource. */
const isApplied = (intent: PendingIntent, current: Environment): boolean => {
  if (intent.attempts === 0) return false
  if (intent.operationId !== null) return current.spec.request?.id === intent.operationId
  return Number(current.metadata.annotations[ANNOTATIONS.intent] ?? 0) >= intent.seq
}

const judgeCreate = (intent: PendingIntent, current: Environment | undefined): IntentDecision => {
  if (current === undefined) return { do: 'create' }
  const { uid, generation, deletionTimestamp } = current.metadata
  if (isOwnCreation(intent, current)) return { do: 'done', uid, generation }
  // Typically the former environment of the same id, between its DeletionRecord and its last finalizer.
  if (deletionTimestamp !== undefined) return { do: 'wait', why: 'A resource of this name is being deleted' }
  return { do: 'fail', error: NAME_TAKEN }
}

const judgeDelete = (intent: PendingIntent, current: Environment): IntentDecision => {
  const { uid, generation, deletionTimestamp } = current.metadata
  if (deletionTimestamp !== undefined) return { do: 'done', uid, generation }
  if (current.spec.deletionProtection === true) return { do: 'fail', error: PROTECTED }
  // Said already, by an earlier attempt; or a number from outside refuses ours, which must not stop a deletion.
  if ((current.spec.request?.seq ?? 0) >= intent.seq) return { do: 'delete', uid, generation }
  return { do: 'announceAndDelete', uid }
}

/** Judges an intent by the resource of its name, or undefined when there is none. */
export const judgeIntent = (intent: PendingIntent, current: Environment | undefined): IntentDecision => {
  if (intent.verb === 'create') return judgeCreate(intent, current)
  const isDelete = intent.verb === 'delete'
  if (intent.uid === null) {
    if (!isDelete) return { do: 'fail', error: ENVIRONMENT_GONE }
    if (current === undefined || !isOwnCreation(intent, current)) return { do: 'cancelCreate' }
    return { do: 'bind', uid: current.metadata.uid }
  }
  if (current?.metadata.uid !== intent.uid)
    return isDelete ? { do: 'done', uid: intent.uid, generation: undefined } : { do: 'fail', error: ENVIRONMENT_GONE }
  if (isDelete) return judgeDelete(intent, current)
  const { uid, generation, resourceVersion, deletionTimestamp } = current.metadata
  if (isApplied(intent, current)) return { do: 'done', uid, generation }
  if (deletionTimestamp !== undefined) return { do: 'fail', error: OVERTAKEN }
  // An update carries no number that the store would refuse if it came too late; a version does that for it.
  if (intent.verb === 'update') return { do: 'patch', uid, resourceVersion }
  if ((current.spec.request?.seq ?? 0) >= intent.seq) return { do: 'fail', error: OVERTAKEN }
  return { do: 'patch', uid, resourceVersion: undefined }
}
