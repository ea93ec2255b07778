/**
 * Carries one intent to the resource store and records that it did. A crash at any point is harmless: the next attempt
 * sees what the last one did.
 *
 *   look at the store -> judge -> (under the lease: count the attempt) -> write, bound to what was seen -> record
 *
 * A dispatcher that slept through the loss of its lease changes nothing when it wakes: requests carry a number, and the
 * store refuses one that does not rise; updates have none, so they are bound to the version that was looked at before
 * the lease was checked, and whatever a successor wrote has moved that.
 */
import { deletionRecordType } from '../../crds/deletion-record-type.ts'
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import { isStoreError, type StoreError } from '../../runtime/store/store-error.ts'
import { settleChange } from '../commands/settle-change.ts'
import { type FencedTransactions, LeaseLostError } from '../store/fenced-transactions.ts'
import { claimIntent } from '../store/intents.ts'
import {
  bindEnvironment,
  boundUid,
  knownUids,
  type PendingIntent,
  recordDispatched,
  recordFailed,
  recordNothingToDelete,
} from '../store/pending-intents.ts'
import type { Sql } from '../store/sql.ts'
import { buildEnvironment, buildPatch, type IntentContent } from './build-spec.ts'
import { judgeIntent, PROTECTED } from './judge-intent.ts'
import { ForeignNamespaceError, NamespaceGoingError, type ProjectNamespaces } from './project-namespaces.ts'

export interface CarryContext {
  readonly store: ResourceStore
  readonly fenced: FencedTransactions
  /** For reads outside a transaction. */
  readonly sql: Sql
  /** Whether this process may write to the store right now. */
  readonly leads: () => boolean
  /** Where the operator leaves DeletionRecords. */
  readonly operatorNamespace: string
  /** Left out where namespaces are mere names. */
  readonly namespaces?: ProjectNamespaces | undefined
  readonly log: Log
}

/** Thrown when an intent must be tried again later; nothing is wrong with it. */
export class TryLaterError extends Error {}

const keyOfIntent = (intent: PendingIntent): ResourceKey => ({
  namespace: intent.namespace,
  name: intent.resourceName,
})

const contentOf = (intent: PendingIntent): IntentContent => ({
  seq: intent.seq,
  verb: intent.verb,
  payload: intent.payload,
  operation:
    intent.operationId === null || intent.actor === null ? undefined : { id: intent.operationId, actor: intent.actor },
  actor: intent.actor ?? undefined,
})

/** Why the store refused, for the caller of the API. */
const refusalText = (error: StoreError): string =>
  error.violations.length === 0
    ? `The resource store refused it: ${error.message}`
    : `The resource store refused it: ${error.violations.map(({ field, message }) => `${field}: ${message}`).join('; ')}`

/**
 * One look, one judgement, one write.
 * @returns whether its fate is recorded; `again`: the resource changed in between, or the intent was cancelled
 * @throws StoreError `Unavailable`, `TooManyRequests` and others that pass; TryLaterError; LeaseLostError
 */
export const carryIntent = async (intent: PendingIntent, context: CarryContext): Promise<'settled' | 'again'> => {
  try {
    return await carry(intent, context)
  } catch (error) {
    if (!isStoreError(error, 'Conflict', 'NotFound', 'AlreadyExists')) throw error
    context.log.debug({ err: error }, 'The resource changed under an intent')
    return 'again'
  }
}

const carry = async (intent: PendingIntent, context: CarryContext): Promise<'settled' | 'again'> => {
  const { store, fenced } = context
  // A first create expects nothing to be there, and hears AlreadyExists if it is wrong.
  const looks = intent.verb !== 'create' || intent.attempts > 0
  const current = looks ? await store.get(environmentType, keyOfIntent(intent)) : undefined
  const decision = judgeIntent(intent, current)
  switch (decision.do) {
    case 'wait':
      throw new TryLaterError(decision.why)
    case 'fail':
      await fail(intent, context, decision.error)
      return 'settled'
    case 'cancelCreate':
      await fenced(sql => recordNothingToDelete(sql, intent))
      return 'settled'
    case 'bind':
      await fenced(sql => bindEnvironment(sql, intent.environmentRow, decision.uid))
      return 'again'
    case 'done':
      await fenced(sql => recordWritten(sql, intent, decision))
      return 'settled'
    case 'create':
      return create(intent, context)
    case 'patch':
    case 'announceAndDelete':
    case 'delete':
      return change(intent, context, decision)
  }
}

/** The store holds the intent's effect: records that, and answers whoever waits for a change. */
const recordWritten = (
  sql: Sql,
  intent: PendingIntent,
  written: { readonly uid: string; readonly generation: number | undefined },
): Promise<void> =>
  intent.call === null || written.generation === undefined
    ? recordDispatched(sql, intent, written)
    : settleChange(sql, intent, written.generation)

const fail = async (intent: PendingIntent, { fenced, log }: CarryContext, error: string): Promise<void> => {
  await fenced(sql => recordFailed(sql, intent, error))
  log.info({ error }, 'What was asked for cannot be carried')
}

/** Counts the attempt. false: a command cancelled the intent, there is nothing to do any more. */
const begin = async (intent: PendingIntent, { fenced, leads }: CarryContext): Promise<boolean> => {
  const claimed = await fenced(sql => claimIntent(sql, intent.intentId))
  // The last look before the write: a process that slept since its last renewal stops here.
  if (claimed !== undefined && !leads()) throw new TryLaterError('Not leading right now')
  return claimed !== undefined
}

const create = async (intent: PendingIntent, context: CarryContext): Promise<'settled' | 'again'> => {
  const { store, fenced, log } = context
  if (intent.attempts > 0) await assertNotDeletedAlready(intent, context)
  if (!(await begin(intent, context))) return 'again'
  const { organizationId, projectId, environmentId } = intent
  const place = { ...keyOfIntent(intent), path: { organizationId, projectId, environmentId } }
  let created: Environment
  try {
    await context.namespaces?.ensure(intent)
    created = await store.create(environmentType, buildEnvironment(place, contentOf(intent)))
  } catch (error) {
    await fail(intent, context, await whyRefused(error, intent, context))
    return 'settled'
  }
  try {
    await fenced(sql => recordDispatched(sql, intent, created.metadata))
  } catch (error) {
    if (error instanceof LeaseLostError) await undoStrayCreate(intent, created, context)
    throw error
  }
  log.info({ uid: created.metadata.uid }, 'Created the resource')
  return 'settled'
}

/** Why a create will never succeed. @throws TryLaterError when its namespace is only not there yet, or still going; else what it met */
const whyRefused = async (error: unknown, intent: PendingIntent, { namespaces }: CarryContext): Promise<string> => {
  namespaces?.doubt(intent.namespace)
  if (isStoreError(error, 'NotFound') || error instanceof NamespaceGoingError)
    throw new TryLaterError(`Cannot create: ${error.message}`)
  if (error instanceof ForeignNamespaceError) return error.message
  if (!isStoreError(error, 'Invalid', 'Forbidden')) throw error
  try {
    // In a namespace that is being deleted everything is forbidden, for a while.
    if (error.reason === 'Forbidden') await namespaces?.ensure(intent)
  } catch (going) {
    if (going instanceof NamespaceGoingError) throw new TryLaterError(`Cannot create: ${going.message}`)
    throw going
  }
  return refusalText(error)
}

/**
 * An earlier attempt may have created the resource, and somebody may have deleted it since: then its DeletionRecord is there, and
 * a second create would resurrect it. The projector folds that record first, which ends this intent; it may have noted the uid
 * before, when it saw the resource. Only former environments of the name say nothing about this one.
 */
const assertNotDeletedAlready = async (intent: PendingIntent, context: CarryContext): Promise<void> => {
  const { items } = await context.store.list(deletionRecordType, { namespace: context.operatorNamespace })
  const uids = items
    .filter(({ spec }) => spec.name === intent.resourceName && spec.namespace === intent.namespace)
    .map(({ spec }) => spec.uid)
  const known = uids.length === 0 ? [] : await knownUids(context.sql, uids)
  // Looked at last: a known uid may have been this environment's own, noted just now. One whose finalizer somebody took off by hand
  // leaves no record at all.
  const bound = await boundUid(context.sql, intent.intentId)
  if (uids.some(uid => !known.includes(uid)) || (bound !== undefined && bound.uid !== null))
    throw new TryLaterError('The resource was deleted before its creation was recorded')
}

/**
 * The lease went to somebody else while the create was under way. Mostly that one finds the resource and goes on with it;
 * but if the environment has ended or got another resource meanwhile, ours must not stay.
 */
const undoStrayCreate = async (intent: PendingIntent, created: Environment, context: CarryContext): Promise<void> => {
  const { uid } = created.metadata
  const bound = await boundUid(context.sql, intent.intentId)
  if (bound?.uid === uid || (bound?.uid === null && bound.pending)) return
  context.log.warn({ uid, operationId: intent.operationId }, 'Deletes a resource that was created too late')
  await context.store.delete(environmentType, keyOfIntent(intent), { uid })
}

type Change = Extract<ReturnType<typeof judgeIntent>, { readonly do: 'patch' | 'announceAndDelete' | 'delete' }>

const change = async (intent: PendingIntent, context: CarryContext, decision: Change): Promise<'settled' | 'again'> => {
  const { store, fenced } = context
  const key = keyOfIntent(intent)
  const { uid } = decision
  if (!(await begin(intent, context))) return 'again'
  let generation: number
  try {
    if (decision.do === 'delete') generation = decision.generation
    else {
      const resourceVersion = decision.do === 'patch' ? decision.resourceVersion : undefined
      const preconditions = { uid, ...(resourceVersion !== undefined && { resourceVersion }) }
      const patched = await store.patch(environmentType, key, buildPatch(contentOf(intent)), preconditions)
      generation = patched.metadata.generation
    }
    if (decision.do !== 'patch') await store.delete(environmentType, key, { uid })
  } catch (error) {
    if (!isStoreError(error, 'Invalid', 'Forbidden')) throw error
    const now = await store.get(environmentType, key)
    // Another resource has the name by now: the next judgement says what that means.
    if (now?.metadata.uid !== uid) return 'again'
    const isProtected = decision.do !== 'patch' && now.spec.deletionProtection === true
    await fail(intent, context, isProtected ? PROTECTED : refusalText(error))
    return 'settled'
  }
  await fenced(sql => recordWritten(sql, intent, { uid, generation }))
  return 'settled'
}
