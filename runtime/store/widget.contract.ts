/**
 * A resource type of the contract suites' own. A Kubernetes adapter installs it as a CRD with the same meaning: `color` defaults
 * to "grey", unknown spec fields are pruned, the rules below in CEL, status as a subresource, and an admission policy
 * (reason Forbidden) for DELETE of a guarded one.
 */
import type { Resource, ResourceType, Violation } from '../../lib/model/resource.ts'
import type { NewResource } from './resource-store.ts'

export interface WidgetSpec {
  readonly color?: string
  /** At most 10. */
  readonly size?: number
  readonly parts?: readonly string[]
  readonly box?: { readonly width?: number; readonly height?: number }
  /** Immutable once set. */
  readonly serial?: string
  /** true refuses deletion. */
  readonly guarded?: boolean
}

export interface WidgetStatus {
  /** Anything but "impossible". */
  readonly phase?: string
  readonly seen?: { readonly times?: number; readonly by?: string }
  readonly notes?: readonly string[]
}

export type Widget = Resource<WidgetSpec, WidgetStatus>

const SPEC_FIELDS: readonly (keyof WidgetSpec)[] = ['color', 'size', 'parts', 'box', 'serial', 'guarded']

const validate = (next: unknown, old: Widget | undefined): readonly Violation[] => {
  const { spec, status } = next as Widget
  const violations: Violation[] = []
  if ((spec.size ?? 0) > 10) violations.push({ field: 'spec.size', message: 'must be at most 10' })
  if (old?.spec.serial !== undefined && old.spec.serial !== spec.serial)
    violations.push({ field: 'spec.serial', message: 'is immutable' })
  if (status?.phase === 'impossible') violations.push({ field: 'status.phase', message: 'is not a phase' })
  return violations
}

export const widgets: ResourceType<Widget> = {
  apiVersion: 'contract.svc.internal/v1',
  kind: 'Widget',
  plural: 'widgets',
  validate,
  prune: spec => {
    const given = spec as Readonly<Record<string, unknown>>
    const known = SPEC_FIELDS.filter(field => field in given).map(field => [field, given[field]] as const)
    return { color: 'grey', ...(Object.fromEntries(known) as object) }
  },
  admitDelete: current => (current.spec.guarded === true ? 'it is guarded' : undefined),
}

/** A widget to create: what a test is about, on top of nothing that matters. */
export const newWidget = (
  namespace: string,
  name: string,
  spec: WidgetSpec = {},
  rest: Partial<Omit<NewResource<WidgetSpec>, 'spec' | 'name' | 'namespace'>> = {},
): NewResource<WidgetSpec> => ({ namespace, name, spec, ...rest })

export const FINALIZER = 'contract.svc.internal/hold'
