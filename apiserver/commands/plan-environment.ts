/** What a new environment becomes: the caller's words, the project's and the plan's defaults, resolved once. Pure. */
import type { EnvironmentSpec } from '../../crds/environment.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import {
  defaultDataMode,
  defaultDeletionPolicy,
  type EnvironmentKind,
  MAX_TTL_HOURS,
  POSTGRES_MAJOR,
} from '../../lib/model/environment.ts'
import { type EnvironmentPath, environmentName } from '../../lib/model/identifiers.ts'
import { deletionPolicyOf } from '../contract/deletion-policy.ts'
import type { CreateEnvironmentBody } from '../contract/environments.ts'
import type { NewEnvironment } from '../store/environments.ts'
import type { ProjectRow } from '../store/projects.ts'
import type { CommandSettings } from './dependencies.ts'

/** The environment's row, and the spec of the resource that it becomes. */
export interface PlannedEnvironment {
  readonly row: NewEnvironment
  readonly spec: Omit<EnvironmentSpec, 'request'>
}

const HOUR_MS = 3_600_000

/** Hours to live, or null: it does not expire. @throws DomainError `ttl_not_allowed`, `invalid_ttl` */
const resolveTtl = (kind: EnvironmentKind, asked: number | null | undefined, presetHours: number): number | null => {
  if (kind !== 'preview') {
    if (asked === null || asked === undefined) return null
    throw new DomainError('ttl_not_allowed', `Only previews expire; this one is ${kind}`)
  }
  const hours = asked ?? presetHours
  if (asked === undefined || asked === null) return hours === 0 ? null : hours
  if (!Number.isInteger(asked) || asked < 1 || asked > MAX_TTL_HOURS)
    throw new DomainError('invalid_ttl', `ttl_hours must be a whole number of hours between 1 and ${MAX_TTL_HOURS}`)
  return hours
}

/** @throws DomainError `ttl_not_allowed`, `invalid_ttl` */
export const planEnvironment = (
  body: CreateEnvironmentBody,
  project: ProjectRow,
  settings: CommandSettings,
  now: Date,
): PlannedEnvironment => {
  const { kind } = body
  const path: EnvironmentPath = {
    organizationId: body.organization_id,
    projectId: body.project_id,
    environmentId: body.environment_id,
  }
  const ttlHours = resolveTtl(kind, body.ttl_hours, settings.previewDefaultTtlHours)
  const expiresAt = ttlHours === null ? null : new Date(now.getTime() + ttlHours * HOUR_MS)
  const shared = {
    ...path,
    kind,
    dataMode: body.data_mode ?? defaultDataMode(kind),
    region: body.region ?? project.region,
    deletionProtection: body.deletion_protection ?? false,
    deletionPolicy:
      body.deletion_policy === undefined ? defaultDeletionPolicy(kind) : deletionPolicyOf(body.deletion_policy),
  }
  return {
    row: {
      ...shared,
      postgresMajor: POSTGRES_MAJOR,
      ttlHours,
      expiresAt,
      sourceEnvironmentId: null,
      namespace: project.namespace,
      resourceName: environmentName(path),
    },
    spec: {
      ...shared,
      postgresMajor: POSTGRES_MAJOR,
      suspended: false,
      ...(ttlHours === null ? {} : { ttlHours }),
      ...(expiresAt === null ? {} : { expiresAt: expiresAt.toISOString() }),
      resources: settings.plan.resources[kind],
    },
  }
}
