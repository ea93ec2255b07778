/**
 * What the operator was last asked for, kept on the StatefulSet: the host puts the instance back into this state whoever
 * changes it, also after a restart of the operator. Pure.
 */
import { ENVIRONMENT_KINDS, type EnvironmentKind } from '../../../lib/model/environment.ts'
import type { InstanceSpec } from '../host.ts'

export interface Wanted {
  readonly running: boolean
  readonly spec: PlacedSpec
}

/** A spec with nothing left open. */
export interface PlacedSpec extends InstanceSpec {
  readonly image: string
  readonly kind: EnvironmentKind
}

/** Figures that a server reads at its start only: a pod with others is restarted, and nothing else restarts one. */
export const figuresText = ({ image, cpu, memoryBytes, maxConnections }: PlacedSpec): string =>
  JSON.stringify({ image, cpu, memoryBytes, maxConnections })

export const wantedText = ({ running, spec }: Wanted): string => {
  const { image, kind, cpu, memoryBytes, storageBytes, maxConnections } = spec
  return JSON.stringify({
    running,
    spec: { image, kind, cpu, memoryBytes, storageBytes, maxConnections },
  })
}

/** What a text says; undefined where it is not one of ours. */
export const parseWanted = (text: string | undefined): Wanted | undefined => {
  try {
    const value = JSON.parse(text ?? '') as Wanted
    return isWanted(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isWanted = (value: Wanted | null): value is Wanted => {
  if (typeof value?.running !== 'boolean') return false
  const spec = value.spec as PlacedSpec | null
  return (
    typeof spec === 'object' &&
    spec !== null &&
    [spec.image, spec.cpu].every(text => typeof text === 'string' && text !== '') &&
    ENVIRONMENT_KINDS.includes(spec.kind) &&
    [spec.memoryBytes, spec.storageBytes, spec.maxConnections].every(count => Number.isSafeInteger(count) && count > 0)
  )
}
