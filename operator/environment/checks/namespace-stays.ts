import type { GateCheck } from './check.ts'

/** In a namespace that is being deleted nothing can be made, and everything goes: its Environments' own deletion is awaited. */
export const namespaceStays: GateCheck = ({ environment, namespace }) =>
  namespace?.terminating === true
    ? {
        reason: 'NamespaceTerminating',
        message: `The namespace "${environment.metadata.namespace}" is being deleted`,
        outage: false,
        stalled: true,
      }
    : undefined
