/**
 * What is in force for an environment: what its spec says, and the operator's documented defaults where it says
 * nothing (resources made with kubectl alone; the API server always resolves its plan's figures into the spec).
 */
import type { Environment, EnvironmentSpec, EnvironmentStatus } from '../../crds/environment.ts'
import { type DeletionPolicy, defaultDeletionPolicy, type EnvironmentKind } from '../../lib/model/environment.ts'

/** The four figures of an environment, all of them known. */
export type Figures = NonNullable<EnvironmentStatus['resources']>

/** The figures of each kind where the spec has none. */
export type DefaultFigures = Readonly<Record<EnvironmentKind, Figures>>

/** What an environment should be, with nothing left open. */
export interface Wanted {
  readonly suspended: boolean
  readonly figures: Figures
  readonly deletionPolicy: DeletionPolicy
  /** When it is swept, in epoch milliseconds; undefined: never. */
  readonly expiresAtMs: number | undefined
}

const HOUR_MS = 3_600_000

/** Only previews expire, whatever an old object may say: a long-lived environment must never be swept by a stray field. */
const expiryOf = ({ spec, metadata }: Environment): number | undefined => {
  if (spec.kind !== 'preview') return undefined
  if (spec.expiresAt !== undefined) return Date.parse(spec.expiresAt)
  return spec.ttlHours === undefined ? undefined : Date.parse(metadata.creationTimestamp) + spec.ttlHours * HOUR_MS
}

/**
 * What is wanted of an environment. A figure that the spec leaves out stays what `status.resources` says is in force:
 * an operator with other defaults restarts nothing.
 */
export const wantedOf = (environment: Environment, defaults: DefaultFigures): Wanted => {
  const { spec, status } = environment
  return {
    suspended: spec.suspended === true,
    figures: { ...defaults[spec.kind], ...status?.resources, ...definedFigures(spec.resources) },
    deletionPolicy: spec.deletionPolicy ?? defaultDeletionPolicy(spec.kind),
    expiresAtMs: expiryOf(environment),
  }
}

const definedFigures = (figures: EnvironmentSpec['resources']): Partial<Figures> => ({
  ...(figures?.cpu === undefined ? {} : { cpu: figures.cpu }),
  ...(figures?.memory === undefined ? {} : { memory: figures.memory }),
  ...(figures?.storage === undefined ? {} : { storage: figures.storage }),
  ...(figures?.maxConnections === undefined ? {} : { maxConnections: figures.maxConnections }),
})

/** Figures as one comparable text. */
export const figuresText = (figures: Figures): string =>
  [figures.cpu, figures.memory, figures.storage, String(figures.maxConnections)].join(' ')
