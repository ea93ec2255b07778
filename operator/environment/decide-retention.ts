import type { Decision } from './decision.ts'
import type { Observed } from './observed.ts'

/**
 * What comes before everything that an environment does, running or suspended: that the place of its data knows whether to
 * outlast it. No outage and no phase: nobody waits for it, and a status write is not worth it.
 */
export const decideRetention = ({
  environment,
  wanted,
  instance,
}: Pick<Observed, 'environment' | 'wanted' | 'instance'>): Decision | undefined =>
  instance?.deletionPolicy === undefined || instance.deletionPolicy === wanted.deletionPolicy
    ? undefined
    : {
        status: environment.status ?? {},
        action: { kind: 'set-deletion-policy', policy: wanted.deletionPolicy },
        requeueAfterMs: undefined,
      }
