import type { EnvironmentStatus } from '../../crds/environment.ts'

/** Every field may be given as undefined, which removes it. */
export type StatusDraft = { [Field in keyof EnvironmentStatus]: EnvironmentStatus[Field] | undefined }

/** The status that a draft means. */
export const compact = (status: StatusDraft): EnvironmentStatus => {
  const present: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(status)) if (value !== undefined) present[field] = value
  return present
}
