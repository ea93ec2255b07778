import { z } from 'zod'

/** One rule for organization, project and environment ids: 2–64 of `a-z`, `0-9`, `-`, a letter or digit at both ends. */
export const ID_PATTERN = /^[a-z0-9][a-z0-9-]{0,62}[a-z0-9]$/

/** Zod schema of an id; the message never quotes the value. */
export const id = z
  .string()
  .regex(ID_PATTERN, 'must be 2-64 lowercase letters, digits or hyphens, with a letter or digit at both ends')

/** Where an environment stands: unique among all environments of all organizations. */
export interface EnvironmentPath {
  readonly organizationId: string
  readonly projectId: string
  readonly environmentId: string
}

/** The resource name of an environment, `<organization>.<project>.<environment>`: unique by construction, since ids hold no dot. */
export const environmentName = (path: EnvironmentPath): string =>
  `${path.organizationId}.${path.projectId}.${path.environmentId}`
