import { LABELS, labelValue } from '../../../crds/metadata.ts'
import { environmentName } from '../../../lib/model/identifiers.ts'
import type { GateCheck } from './check.ts'

/**
 * A resource is adopted only where its name and its namespace agree with the ids in its spec: otherwise whoever may
 * create Environments in some namespace could put one into another organization.
 */
export const identityMatches: GateCheck = ({ environment, namespace }) => {
  const { metadata, spec } = environment
  const name = environmentName(spec)
  if (metadata.name !== name) return mismatch(`The name is "${metadata.name}", the ids in its spec ask for "${name}"`)
  if (namespace === undefined) return undefined
  const expected = {
    [LABELS.organization]: labelValue(spec.organizationId),
    [LABELS.project]: labelValue(spec.projectId),
  }
  for (const [label, value] of Object.entries(expected))
    if (namespace.labels[label] !== value)
      return mismatch(`The namespace "${metadata.namespace}" has no label ${label}=${value}`)
  return undefined
}

const mismatch = (message: string): ReturnType<GateCheck> => ({
  reason: 'NamespaceMismatch',
  message,
  outage: false,
  stalled: true,
})
