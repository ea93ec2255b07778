/** The DeletionRecord resource: what the operator leaves behind for every Environment that it let go. */
import { z } from 'zod'
import { id } from '../lib/model/identifiers.ts'
import type { Resource } from '../lib/model/resource.ts'

export const deletionRecordSpec = z.object({
  uid: z.string().max(64).describe('uid of the Environment that is gone'),
  name: z.string().max(253).describe('Its name'),
  namespace: z.string().max(63).describe('Its namespace'),
  organizationId: id.max(64).describe('Its organization'),
  projectId: id.max(64).describe('Its project'),
  environmentId: id.max(64).describe('Its id'),
  cause: z
    .string()
    .max(80)
    .regex(/^(ttl|external|request:.+)$/)
    .describe('ttl, external, or request:<operation id>'),
  actor: z.string().max(128).optional().describe('For external: the client that asked, where known'),
  deletedAt: z.string().max(40).describe('When its data was dealt with, RFC 3339'),
  retained: z.boolean().describe('Whether data was kept'),
  retainedAt: z.string().max(1024).optional().describe('Where it was kept: a folder or a claim'),
  retainedUntil: z.string().max(40).optional().describe('Until when at least, RFC 3339'),
})
export type DeletionRecordSpec = z.infer<typeof deletionRecordSpec>

export type DeletionRecord = Resource<DeletionRecordSpec, undefined>

/** The name of the record of a uid: one each. */
export const deletionRecordName = (uid: string): string => `environment-${uid}`
