/**
 * What an intent writes to the resource store: pure, rows in, resource or patch out.
 *
 * `intents.payload` speaks the resource's words, so that nothing is translated here:
 *
 * | verb            | payload                                                              |
 * | --------------- | -------------------------------------------------------------------- |
 * | create          | the whole spec, without `request`                                    |
 * | update          | a merge patch of the spec (null removes a field), without `request`  |
 * | suspend, resume | {}                                                                   |
 * | rotate          | { credentialsRotation }: a text that was never used before           |
 * | delete          | {}                                                                   |
 */
import type { EnvironmentSpec } from '../../crds/environment.ts'
import { ANNOTATIONS, ENVIRONMENT_FINALIZER, environmentLabels } from '../../crds/metadata.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { RequestVerb } from '../../lib/model/operation.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { MergePatch, NewResource, ResourcePatch } from '../../runtime/store/resource-store.ts'

/** The payload of a `create` intent. */
export type CreatePayload = Omit<EnvironmentSpec, 'request'>

/** What an intent asks for. */
export type IntentVerb = RequestVerb | 'update'

/** What is needed of an intent, and of its operation where it has one. */
export interface IntentContent {
  readonly seq: number
  readonly verb: IntentVerb
  readonly payload: Readonly<Record<string, unknown>>
  /** `id` is the operation's. Every verb but `update` has one. */
  readonly operation: { readonly id: string; readonly actor: string } | undefined
  /** Who asked for an `update`. */
  readonly actor?: string | undefined
}

/** The intent's mark on a resource: who it is for, and its number. */
const annotationsOf = (intent: IntentContent): { [annotation: string]: string | null } => ({
  [ANNOTATIONS.actor]: intent.operation?.actor ?? intent.actor ?? null,
  [ANNOTATIONS.intent]: String(intent.seq),
})

const requestOf = (intent: IntentContent): NonNullable<EnvironmentSpec['request']> | undefined =>
  intent.verb === 'update' || intent.operation === undefined
    ? undefined
    : { id: intent.operation.id, seq: intent.seq, verb: intent.verb }

/**
 * The resource that a `create` intent makes. It holds the operator's finalizer from its first moment, so that no
 * deletion, however early, goes without a DeletionRecord.
 */
export const buildEnvironment = (
  place: ResourceKey & { readonly path: EnvironmentPath },
  intent: IntentContent,
): NewResource<EnvironmentSpec> => {
  const request = requestOf(intent)
  const annotations = Object.entries(annotationsOf(intent)).filter(
    (entry): entry is [string, string] => entry[1] !== null,
  )
  return {
    namespace: place.namespace,
    name: place.name,
    labels: environmentLabels(place.path),
    annotations: Object.fromEntries(annotations),
    finalizers: [ENVIRONMENT_FINALIZER],
    // Commands wrote the payload with this very type; the store validates it again.
    spec: { ...(intent.payload as CreatePayload), ...(request === undefined ? {} : { request }) },
  }
}

/** The spec fields that an intent sets, without its request: also what explains a change that the projector sees. */
export const specChangesOf = (intent: Pick<IntentContent, 'verb' | 'payload'>): MergePatch => {
  switch (intent.verb) {
    case 'create':
    case 'update':
    case 'rotate':
      return intent.payload
    case 'suspend':
      return { suspended: true }
    case 'resume':
      return { suspended: false }
    case 'delete':
      return {}
  }
}

/** The patch of every intent but `create`. */
export const buildPatch = (intent: IntentContent): ResourcePatch => {
  const request = requestOf(intent)
  return {
    metadata: { annotations: annotationsOf(intent) },
    spec: { ...specChangesOf(intent), ...(request === undefined ? {} : { request }) },
  }
}
