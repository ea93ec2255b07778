/** Organizations: who may see what is decided by membership in one. */
import { z } from 'zod'
import { ROLES } from '../../lib/model/credential.ts'
import { defineRoute } from './route.ts'
import { isoTime, nextCursor, organizationId, pageQuery, text } from './scalars.ts'

export const role = z
  .enum(ROLES)
  .meta({ description: 'Each role may do what the ones before it may', example: 'developer' })

const name = text(1, 120).meta({ description: 'Display name', example: 'Acme' })

export const organizationParams = z.strictObject({ org: organizationId })

/** An organization. */
export const organizationRecord = z
  .object({ organization_id: organizationId, name, created_at: isoTime, updated_at: isoTime })
  .meta({ id: 'Organization' })
export type OrganizationRecord = z.infer<typeof organizationRecord>

/** An organization as one of its members sees it. */
export const organizationWithRole = organizationRecord.extend({ role }).meta({ id: 'OrganizationWithRole' })
export type OrganizationWithRole = z.infer<typeof organizationWithRole>

export const putOrganizationBody = z.strictObject({ name })

const example = {
  organization_id: 'acme',
  name: 'Acme',
  created_at: '2026-11-27T10:00:00.000Z',
  updated_at: '2026-11-27T10:00:00.000Z',
}

export const organizationRoutes = {
  listOrganizations: defineRoute({
    operationId: 'listOrganizations',
    method: 'get',
    path: '/v1/organizations',
    tag: 'Organizations',
    summary: 'List the organizations the caller is a member of',
    policy: 'organizations.list',
    organization: 'none',
    query: pageQuery,
    idempotency: 'none',
    success: {
      status: 200,
      description: 'The organizations, oldest first',
      body: z.object({ organizations: z.array(organizationWithRole), next_cursor: nextCursor }),
    },
    errors: [],
    examples: { response: { organizations: [{ ...example, role: 'owner' }], next_cursor: null } },
  }),
  putOrganization: defineRoute({
    operationId: 'putOrganization',
    method: 'put',
    path: '/v1/organizations/{org}',
    tag: 'Organizations',
    summary: 'Create an organization or rename it',
    description:
      'Creating needs an operator, or sign-up to be open; the creator becomes owner. Renaming needs the role admin.',
    policy: 'organization.put',
    organization: 'path',
    params: organizationParams,
    body: putOrganizationBody,
    idempotency: 'required',
    success: { status: 200, description: 'The organization', body: organizationRecord },
    errors: [],
    examples: { request: { name: 'Acme' }, response: example },
  }),
  getOrganization: defineRoute({
    operationId: 'getOrganization',
    method: 'get',
    path: '/v1/organizations/{org}',
    tag: 'Organizations',
    summary: 'Read an organization',
    policy: 'organization.read',
    organization: 'path',
    params: organizationParams,
    idempotency: 'none',
    success: { status: 200, description: 'The organization and the caller’s role in it', body: organizationWithRole },
    errors: [],
    examples: { response: { ...example, role: 'owner' } },
  }),
}
