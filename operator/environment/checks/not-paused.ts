import { ANNOTATIONS } from '../../../crds/metadata.ts'
import type { GateCheck } from './check.ts'

/** A paused environment is left alone, expiry included; only its deletion is still served. */
export const notPaused: GateCheck = ({ environment }) =>
  environment.metadata.annotations[ANNOTATIONS.paused] === 'true'
    ? {
        reason: 'Paused',
        message: `Not reconciled while the annotation ${ANNOTATIONS.paused} is "true"`,
        outage: false,
        stalled: true,
      }
    : undefined
