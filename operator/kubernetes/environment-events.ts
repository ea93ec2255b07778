import { environmentType } from '../../crds/environment-type.ts'
import type { EventRecorder } from '../../runtime/kubernetes/event-recorder.ts'
import type { Events } from '../environment/events.ts'

/** Tells environments' stories as events of the cluster: `kubectl describe` shows them. */
export const environmentEvents = (recorder: Pick<EventRecorder, 'record'>): Events => {
  const { apiVersion, kind } = environmentType
  return {
    tell: ({ key, uid }, { type, reason, message }) =>
      recorder.record({ apiVersion, kind, ...key, uid }, { type, reason, action: 'Reconcile', note: message }),
  }
}
