/**
 * What a resource means for the rows: pure. Level-based: only what is seen counts, never how it came about, so events may
 * be lost, doubled or merged. What is seen may be older than what we wrote: then nothing is concluded from its absence.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Environment, EnvironmentSpec } from '../../crds/environment.ts'
import { defaultDeletionPolicy, type Phase } from '../../lib/model/environment.ts'
import type { Judgement } from '../../lib/model/operation.ts'
import { specChangesOf } from '../dispatch/build-spec.ts'
import type { FoldedColumns, UnderWay, UnfoldedIntent } from '../store/environment-folds.ts'
import type { EnvironmentRow } from '../store/environments.ts'
import { unexplainedFields } from './explain-changes.ts'
import { isVisible, judgeOpenOperation } from './judge-open-operation.ts'

/** A change that did not come through the API. */
export interface ExternalChange {
  readonly generation: { readonly from: number | null; readonly to: number }
  readonly fields: readonly string[]
  /** The client that last changed the spec, where that may have been the one. */
  readonly manager: string | undefined
}

/** What to write. Absent parts: nothing changed there. */
export interface EnvironmentFold {
  readonly columns?: FoldedColumns
  readonly external?: ExternalChange
  readonly judgement?: Judgement
  readonly foldedIntents: readonly number[]
}

export interface FoldInput {
  readonly row: EnvironmentRow
  readonly resource: Environment
  readonly underWay: UnderWay
  /** Our own name as a client of the store. */
  readonly clientName: string
  /** The spec as the store keeps it: defaults filled in. */
  readonly prune: (spec: unknown) => unknown
}

/** The phase: what the operator says, except that a deletion that was asked for is never shown as anything else. */
export const phaseOf = ({ metadata, status }: Environment): Phase =>
  metadata.deletionTimestamp !== undefined ? 'deleting' : (status?.phase ?? 'requested')

/** The spec that changes are judged against at the first look: what our create wrote. */
const specAtCreation = ({ underWay, prune }: FoldInput): EnvironmentSpec | undefined => {
  const create = underWay.intents.find(({ verb }) => verb === 'create')
  // The store accepted it, so it is a spec.
  return create && (prune(create.payload) as EnvironmentSpec)
}

const externalChange = (input: FoldInput): ExternalChange | undefined => {
  const { row, resource, underWay, clientName } = input
  const { generation, lastManager } = resource.metadata
  const before = row.observedSpec ?? specAtCreation(input)
  if (before === undefined || generation <= (row.observedGeneration ?? 1)) return undefined
  const fields = unexplainedFields(before, resource.spec, underWay)
  if (fields.length === 0) return undefined
  // Where several wrote since the last look, the last one may have been we ourselves.
  const manager = lastManager === clientName ? undefined : lastManager
  return { generation: { from: row.observedGeneration, to: generation }, fields, manager }
}

/** `outstanding` is what is still on its way once the fold is written. */
const columnsOf = ({ row, resource }: FoldInput, outstanding: readonly UnfoldedIntent[]): FoldedColumns => {
  const { spec, status, metadata } = resource
  // A field that a change of ours is about to set, or has set unseen as yet, keeps the value that callers were told.
  const isOnItsWay = (field: keyof EnvironmentSpec): boolean =>
    outstanding.some(intent => field in specChangesOf(intent))
  const keepsExpiry = isOnItsWay('expiresAt')
  const expiresAt = spec.expiresAt ?? status?.expiresAt
  const expiry = expiresAt === undefined ? null : new Date(expiresAt)
  return {
    phase: phaseOf(resource),
    status: status ?? null,
    observedGeneration: metadata.generation,
    observedSpec: spec,
    ttlHours: keepsExpiry ? row.ttlHours : (spec.ttlHours ?? row.ttlHours),
    expiresAt: keepsExpiry ? row.expiresAt : expiry,
    deletionProtection: isOnItsWay('deletionProtection') ? row.deletionProtection : spec.deletionProtection === true,
    deletionPolicy: isOnItsWay('deletionPolicy')
      ? row.deletionPolicy
      : (spec.deletionPolicy ?? defaultDeletionPolicy(spec.kind)),
  }
}

const isUnchanged = (row: EnvironmentRow, columns: FoldedColumns): boolean =>
  Object.entries(columns).every(([name, value]) => isDeepStrictEqual(row[name as keyof FoldedColumns], value))

/** Folds a resource into its row, which is bound to the resource's uid and not `deleted`. */
export const foldEnvironment = (input: FoldInput): EnvironmentFold => {
  const { row, resource, underWay } = input
  // An older state than the one folded last, from a cache that lags behind.
  if (resource.metadata.generation < (row.observedGeneration ?? 0)) return { foldedIntents: [] }
  const foldedIntents = underWay.intents.filter(intent => isVisible(intent, resource)).map(({ id }) => id)
  const columns = columnsOf(
    input,
    underWay.intents.filter(({ id }) => !foldedIntents.includes(id)),
  )
  const external = externalChange(input)
  const judgement = judgeOpenOperation(underWay, resource)
  return {
    foldedIntents,
    ...(isUnchanged(row, columns) ? {} : { columns }),
    ...(external && { external }),
    ...(judgement && { judgement }),
  }
}
