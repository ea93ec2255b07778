import type { Figures } from '../defaults.ts'
import { figuresText } from '../defaults.ts'
import type { Observed } from '../observed.ts'
import { startAction } from '../start-action.ts'
import type { Check } from './check.ts'

/** What was asked for is read at a start of the server, and one that runs is stopped for it. */
export const RESTART_DUE = 'RestartDue'

/**
 * The host was asked to run the instance with the figures that are wanted. Outside `ready` it is asked at least once an
 * attempt, which also makes it try at once; in `ready` only when figures changed.
 */
export const settingsApplied: Check = observed => {
  if (areSettingsApplied(observed)) return undefined
  const { environment, wanted } = observed
  const ready = environment.status?.phase === 'ready'
  const inForce = ready ? environment.status.resources : undefined
  const restart = ready && inForce !== undefined && needsRestart(inForce, wanted.figures)
  return {
    reason: restart ? RESTART_DUE : 'Starting',
    message: restart ? 'Restarting Postgres with other figures' : 'Starting Postgres',
    repair: startAction(observed),
    outage: restart,
  }
}

/** Whether the host was asked for the figures that are wanted. */
export const areSettingsApplied = ({
  environment: { status },
  wanted,
  recollection: { startedWith },
}: Pick<Observed, 'environment' | 'wanted' | 'recollection'>): boolean => {
  const inForce = status?.phase === 'ready' ? status.resources : undefined
  const applied = startedWith ?? (inForce === undefined ? undefined : figuresText(inForce))
  return applied === figuresText(wanted.figures)
}

/** A disk grows under a running Postgres; everything else is read at its start. */
const needsRestart = (inForce: Figures, wanted: Figures): boolean =>
  inForce.cpu !== wanted.cpu || inForce.memory !== wanted.memory || inForce.maxConnections !== wanted.maxConnections
