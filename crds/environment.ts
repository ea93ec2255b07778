/** The Environment resource: spec and status, once, for both stores, REST and documents. */
import { z } from 'zod'
import {
  DATA_MODES,
  DELETION_POLICIES,
  ENVIRONMENT_KINDS,
  MAX_TTL_HOURS,
  PHASES,
  POSTGRES_MAJOR,
} from '../lib/model/environment.ts'
import { id } from '../lib/model/identifiers.ts'
import { REQUEST_VERBS } from '../lib/model/operation.ts'
import { BYTES_QUANTITY, CPU_QUANTITY } from '../lib/model/quantity.ts'
import type { Resource } from '../lib/model/resource.ts'
import { conditionList } from './conditions.ts'

const timestamp = z
  .string()
  .max(40)
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$/)

/** The effective figures of an environment: on the single box memory, storage and CPU shape Postgres' settings, on Kubernetes the pod. */
export const resourcesSchema = z.object({
  cpu: z.string().regex(CPU_QUANTITY).max(8).describe('CPU limit, e.g. 500m or 2'),
  memory: z.string().regex(BYTES_QUANTITY).max(8).describe('Memory limit, e.g. 256Mi or 1Gi'),
  storage: z.string().regex(BYTES_QUANTITY).max(8).describe('Disk size, e.g. 1Gi; may only grow'),
  maxConnections: z.int().min(5).max(5000).describe('max_connections for the tenant, the control plane’s own aside'),
})

export const environmentSpec = z.object({
  organizationId: id.max(64).describe('Organization the environment belongs to'),
  projectId: id.max(64).describe('Project the environment belongs to'),
  environmentId: id.max(64).describe('Id of the environment within its project'),
  kind: z.enum(ENVIRONMENT_KINDS).describe('production, staging or preview; immutable'),
  dataMode: z.enum(DATA_MODES).optional().describe('What a clone takes from its source'),
  sourceEnvironmentId: id
    .max(64)
    .optional()
    .describe('Environment of the same project to clone from; absent: starts empty'),
  region: z.string().min(1).max(64).optional().describe('A label without meaning for self-hosted deployments'),
  postgresMajor: z.literal(POSTGRES_MAJOR).optional().describe('Major version of Postgres'),
  suspended: z.boolean().optional().describe('true stops Postgres and keeps the data'),
  ttlHours: z
    .int()
    .min(1)
    .max(MAX_TTL_HOURS)
    .optional()
    .describe('Preview only: hours to live from creation, where expiresAt is absent'),
  expiresAt: timestamp.optional().describe('Preview only: when the environment is deleted, RFC 3339 UTC'),
  deletionProtection: z.boolean().optional().describe('true refuses deletion'),
  deletionPolicy: z.enum(DELETION_POLICIES).optional().describe('What becomes of the data at deletion'),
  image: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .describe('Postgres image; absent: the operator’s default, pinned in status.image'),
  resources: resourcesSchema
    .partial()
    .optional()
    .describe('Figures in force; absent ones are the operator’s defaults for the kind'),
  credentialsRotation: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('Any text; another one than before asks for new passwords, once'),
  request: z
    .object({
      id: z.string().min(1).max(64).describe('Operation id'),
      seq: z.int().min(1).describe('Counts the environment’s requests; never falls'),
      verb: z.enum(REQUEST_VERBS).describe('What was asked for'),
    })
    .optional()
    .describe('The API server’s latest request; absent for resources made with kubectl alone'),
})
export type EnvironmentSpec = z.infer<typeof environmentSpec>

export const endpointSchema = z.object({
  host: z.string().max(253).describe('Name or address clients connect to'),
  port: z.int().min(1).max(65535).describe('TCP port'),
  sslmode: z.enum(['disable', 'prefer', 'require', 'verify-full']).describe('What clients should ask for'),
  external: z
    .object({
      host: z.string().max(253).describe('Name or address from outside'),
      port: z.int().min(1).max(65535).describe('TCP port from outside'),
    })
    .optional()
    .describe('Where clients outside the cluster connect, if it is exposed'),
  caCertificate: z
    .string()
    .max(8192)
    .optional()
    .describe('PEM of the authorities that sign the server’s certificate, for sslrootcert; public'),
})
export type Endpoint = z.infer<typeof endpointSchema>

/** What a cluster puts where nobody has judged: whoever reads a status by its generation alone does not take a new one for done. */
const NEVER_JUDGED = -1

const statusFields = z.object({
  phase: z.enum(PHASES).optional().describe('Where the environment stands'),
  phaseTransitionTime: timestamp.optional().describe('When the phase last changed'),
  observedGeneration: z
    .int()
    .min(NEVER_JUDGED)
    .optional()
    .describe('The generation this status was judged for; -1: none yet'),
  conditions: conditionList.optional(),
  operation: z
    .object({
      id: z.string().max(64).describe('Request id this is about'),
      seq: z.int().min(1).describe('Its number'),
      outcome: z.enum(['running', 'succeeded', 'failed']).describe('How it stands'),
      attempts: z.int().min(0).describe('Attempts so far'),
      message: z.string().max(1024).optional().describe('Why it is not done, or why it failed'),
    })
    .optional()
    .describe('How the request in spec.request stands'),
  everReady: z
    .boolean()
    .optional()
    .describe('true once the environment has been ready: its data is never initialized again'),
  attempts: z
    .int()
    .min(0)
    .optional()
    .describe('Attempts to bring Postgres up since it was last ready; absent once it is'),
  endpoint: endpointSchema.optional().describe('Where Postgres answers'),
  credentialsRotation: z
    .string()
    .max(64)
    .optional()
    .describe('The spec.credentialsRotation that was last served: the stored passwords are of after it'),
  expiresAt: timestamp.optional().describe('The expiry in force'),
  graceUntil: timestamp.optional().describe('An expired preview that nothing protects: when it is deleted'),
  node: z.string().max(253).optional().describe('The node that it runs on, or ran on last; absent where it sleeps'),
  image: z.string().max(512).optional().describe('The Postgres that runs, or ran last'),
  lineage: z.string().max(128).optional().describe('Where the data came from: template:<key> or clone:<uid>'),
  resources: resourcesSchema.optional().describe('The figures in force'),
  deletionPolicy: z.enum(DELETION_POLICIES).optional().describe('The policy in force'),
  deletionProtection: z
    .boolean()
    .optional()
    .describe('true: it was protected from deletion at the last look, or may have been since the one before'),
})
export const environmentStatus = statusFields.meta({ default: { observedGeneration: NEVER_JUDGED } })
export type EnvironmentStatus = z.infer<typeof environmentStatus>

/** The generation that a status was judged for; 0, which none has, where nobody has judged yet. */
export const judgedGeneration = (status: EnvironmentStatus | undefined): number =>
  Math.max(0, status?.observedGeneration ?? 0)

export type Environment = Resource<EnvironmentSpec, EnvironmentStatus>
