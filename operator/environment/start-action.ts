import { quantityToBytes } from '../../lib/model/quantity.ts'
import type { Action } from './action.ts'
import type { Observed } from './observed.ts'

/**
 * Builds the start of what is wanted. The image changes only where nothing runs because somebody wanted that or because
 * nothing else works: at the first start, at a resume and when a failed environment is tried again.
 */
export const startAction = ({ environment, wanted }: Observed): Action => {
  const { spec, status } = environment
  const { cpu, memory, storage, maxConnections } = wanted.figures
  const phase = status?.phase ?? 'requested'
  const pinned = phase === 'ready' || phase === 'updating'
  const tried = phase === 'failed_recoverable' ? status?.image : undefined
  return {
    kind: 'start',
    figures: wanted.figures,
    settings: {
      cpu,
      maxConnections,
      kind: spec.kind,
      deletionPolicy: wanted.deletionPolicy,
      memoryBytes: quantityToBytes(memory),
      storageBytes: quantityToBytes(storage),
      image: pinned ? status?.image : (spec.image ?? tried),
    },
  }
}
