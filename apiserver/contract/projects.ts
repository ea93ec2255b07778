/** Projects: an application's environments and their defaults. */
import { z } from 'zod'
import { organizationParams } from './organizations.ts'
import { defineRoute } from './route.ts'
import { isoTime, nextCursor, organizationId, pageQuery, postgresMajor, projectId, region } from './scalars.ts'

const protectProduction = z.boolean().meta({
  description: 'true: what touches production needs the role admin. Only an admin may change it',
  example: false,
})

/** A project. */
export const projectRecord = z
  .object({
    organization_id: organizationId,
    project_id: projectId,
    region,
    postgres_major: z.int().meta({ description: 'Major version of Postgres', example: 17 }),
    protect_production: protectProduction,
    created_at: isoTime,
    updated_at: isoTime,
  })
  .meta({ id: 'Project' })
export type ProjectRecord = z.infer<typeof projectRecord>

const projectParams = z.strictObject({ org: organizationId, project: projectId })

export const putProjectBody = z.strictObject({
  region,
  postgres_major: postgresMajor,
  protect_production: protectProduction.optional(),
})
export type PutProjectBody = z.output<typeof putProjectBody>

const example = {
  organization_id: 'acme',
  project_id: 'shop',
  region: 'eu-central',
  postgres_major: 17,
  protect_production: false,
  created_at: '2026-11-27T10:00:00.000Z',
  updated_at: '2026-11-27T10:00:00.000Z',
}

export const projectRoutes = {
  listProjects: defineRoute({
    operationId: 'listProjects',
    method: 'get',
    path: '/v1/organizations/{org}/projects',
    tag: 'Projects',
    summary: 'List the projects of an organization',
    policy: 'organization.read',
    organization: 'path',
    params: organizationParams,
    query: pageQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The projects, oldest first',
      body: z.object({ projects: z.array(projectRecord), next_cursor: nextCursor }),
    },
    errors: [],
    examples: { response: { projects: [example], next_cursor: null } },
  }),
  putProject: defineRoute({
    operationId: 'putProject',
    method: 'put',
    path: '/v1/organizations/{org}/projects/{project}',
    tag: 'Projects',
    summary: 'Create a project or update it',
    policy: 'project.write',
    organization: 'path',
    params: projectParams,
    body: putProjectBody,
    idempotency: 'required',
    success: { status: 200, description: 'The project', body: projectRecord },
    errors: ['unsupported_postgres_major', 'quota_exceeded'],
    examples: { request: { region: 'eu-central', postgres_major: 17 }, response: example },
  }),
  getProject: defineRoute({
    operationId: 'getProject',
    method: 'get',
    path: '/v1/organizations/{org}/projects/{project}',
    tag: 'Projects',
    summary: 'Read a project',
    policy: 'organization.read',
    organization: 'path',
    params: projectParams,
    idempotency: 'none',
    success: { status: 200, description: 'The project', body: projectRecord },
    errors: ['project_not_found'],
    examples: { response: example },
  }),
  deleteProject: defineRoute({
    operationId: 'deleteProject',
    method: 'delete',
    path: '/v1/organizations/{org}/projects/{project}',
    tag: 'Projects',
    summary: 'Delete a project that has no environments',
    policy: 'project.delete',
    organization: 'path',
    params: projectParams,
    idempotency: 'required',
    success: { status: 204, description: 'The project is deleted' },
    errors: ['project_not_found', 'project_has_environments'],
    examples: {},
  }),
}
