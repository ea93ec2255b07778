/** Judges the open operation of an environment by what is seen of it: pure, around the rule in lib/model/operation.ts. */
import type { Environment } from '../../crds/environment.ts'
import { type EnvironmentView, type Judgement, judgeOperation } from '../../lib/model/operation.ts'
import type { OpenOperation, UnderWay, UnfoldedIntent } from '../store/environment-folds.ts'

/** Whether an intent's effect is in the resource: it reached the generation that the store answered at dispatch. */
export const isVisible = (intent: UnfoldedIntent, resource: Environment): boolean =>
  intent.state === 'dispatched' && intent.generation !== null && resource.metadata.generation >= intent.generation

const viewOf = ({ spec, status, metadata }: Environment): EnvironmentView => ({
  gone: false,
  phase: status?.phase,
  deleting: metadata.deletionTimestamp !== undefined,
  requestId: spec.request?.id,
  requestSeq: spec.request?.seq,
  suspendedWanted: spec.suspended,
  reported: status?.operation,
})

/** Whether a judgement says anything that the row does not say already. An operation never goes back to pending. */
const isNews = (operation: OpenOperation, judgement: Judgement): boolean => {
  if (judgement.state === 'succeeded' || judgement.state === 'failed') return true
  const begins = judgement.state === 'running' && operation.state === 'pending'
  return begins || (judgement.attempts ?? 0) > operation.attemptCount
}

/**
 * How the open operation stands; undefined when there is none, or nothing new to say. Without a resource (not made yet,
 * or the store is away) only the deadline can end it.
 */
export const judgeOpenOperation = (underWay: UnderWay, resource: Environment | undefined): Judgement | undefined => {
  const { operation } = underWay
  if (operation === null) return undefined
  const intent = underWay.intents.find(({ operationId }) => operationId === operation.id)
  // No unfolded intent: it was carried, and its effect was seen before.
  const dispatched = intent === undefined || intent.state === 'dispatched' || intent.attempts > 0
  const view = resource === undefined ? { gone: false } : viewOf(resource)
  const judgement = judgeOperation({ ...operation, dispatched }, view)
  if (!isNews(operation, judgement)) return undefined
  return judgement.state === 'pending' ? { ...judgement, state: operation.state } : judgement
}
