/**
 * What the host is asked to do with an instance, on disk beside its data: enough to bring it back after a crash or a machine
 * restart without the resource store. Written before anything is done about it.
 */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { writeFileDurably } from '../../../runtime/files/durable-file.ts'
import type { InstanceRef, InstanceSpec } from '../host.ts'

const specSchema = z.object({
  memoryBytes: z.number().positive(),
  storageBytes: z.number().positive(),
  cpu: z.string(),
  maxConnections: z.int().positive(),
})

const intentSchema = z.object({
  layout: z.literal(1),
  key: z.object({ namespace: z.string(), name: z.string() }),
  uid: z.string(),
  path: z.object({ organizationId: z.string(), projectId: z.string(), environmentId: z.string() }),
  wanted: z.enum(['running', 'stopped', 'destroyed']),
  spec: specSchema,
  /** Given once, kept for the instance's life. */
  port: z.int().min(1).max(65_535),
  /** Where its data came from; decided before it is made. */
  lineage: z.string().optional(),
  /** Its data was made: if it is missing later, nothing makes it anew. */
  initialized: z.boolean().default(false),
  /** What the last launch was given; a running server is compared with it. */
  launched: z.object({ spec: specSchema, listen: z.string(), tls: z.boolean(), postgres: z.string() }).optional(),
  /** The tenant's connection limit as it stands in the database; absent as long as the server never answered. */
  connectionLimit: z.int().optional(),
  /** Set when a destroy keeps the data. */
  retainedUntil: z.string().optional(),
})
export type Intent = z.infer<typeof intentSchema>

/** The part of a spec that this host acts on; it runs the one Postgres that it has, whatever image is named. */
export const localSpec = ({ memoryBytes, storageBytes, cpu, maxConnections }: InstanceSpec): Intent['spec'] => ({
  memoryBytes,
  storageBytes,
  cpu,
  maxConnections,
})

/** A new instance's intent: nothing is wanted yet. */
export const newIntent = (ref: InstanceRef, spec: InstanceSpec, port: number): Intent => ({
  layout: 1,
  key: ref.key,
  uid: ref.uid,
  path: ref.path,
  wanted: 'stopped',
  spec: localSpec(spec),
  port,
  initialized: false,
})

/** @throws Error naming the file when it is damaged or of a newer version */
export const readIntent = async (file: string): Promise<Intent | undefined> => {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    return intentSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw new Error(`Cannot read ${file}: it is damaged or of a newer version`, { cause })
  }
}

export const writeIntent = (file: string, intent: Intent): Promise<void> =>
  writeFileDurably(file, `${JSON.stringify(intent, undefined, 2)}\n`, { mode: 0o600 })

/** Whether a server runs with figures, or at an address, that only another start changes. */
export const needsRestart = (
  { launched, spec }: Intent,
  wanted: { readonly listen: string; readonly tls: boolean },
): boolean =>
  launched?.listen !== wanted.listen ||
  launched.tls !== wanted.tls ||
  launched.spec.memoryBytes !== spec.memoryBytes ||
  launched.spec.cpu !== spec.cpu ||
  launched.spec.maxConnections !== spec.maxConnections
