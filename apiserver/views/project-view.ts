import type { ProjectRecord } from '../contract/projects.ts'
import type { ProjectRow } from '../store/projects.ts'

export const projectView = (row: ProjectRow): ProjectRecord => ({
  organization_id: row.organizationId,
  project_id: row.projectId,
  region: row.region,
  postgres_major: row.postgresMajor,
  protect_production: row.protectProduction,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
