/** What a cluster admin decides about environments: one JSON text, as the chart passes its `environments` values on. */
import { z } from 'zod'
import { ConfigError } from '../../runtime/config/parse-env.ts'

const name = z.string().max(253)
const texts = z.record(z.string(), z.string())

const exposure = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('None') }),
  z.strictObject({ type: z.literal('NodePort'), host: z.string().min(1) }),
  z.strictObject({
    type: z.literal('LoadBalancer'),
    annotations: texts.optional(),
    loadBalancerClass: z.string().optional(),
    sourceRanges: z.array(z.string()).optional(),
  }),
])

/** What is passed through to pods is judged by the cluster, which knows it better. */
const passedThrough = z.array(z.looseObject({}))

const ofKind = z.strictObject({
  graceSeconds: z.int().min(5).max(86_400).optional(),
  nodeSelector: texts.optional(),
  tolerations: passedThrough.optional(),
  affinity: z.looseObject({}).optional(),
  topologySpreadConstraints: passedThrough.optional(),
  priorityClassName: name.optional(),
  runtimeClassName: name.optional(),
  schedulerName: name.optional(),
  exposure: exposure.optional(),
})

const share = z.number().gt(0).max(1)

const environmentsSettings = z.strictObject({
  image: z.string().min(1).max(512).optional(),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).optional(),
  imagePullSecrets: z.array(name).optional(),
  storageClass: name.optional(),
  requestShare: z.strictObject({ cpu: share.optional(), memory: share.optional() }).optional(),
  retentionDays: z.int().min(0).max(3650).optional(),
  production: ofKind.optional(),
  staging: ofKind.optional(),
  preview: ofKind.optional(),
})
export type EnvironmentsSettings = z.infer<typeof environmentsSettings>

/** @throws ConfigError that names what cannot be used */
export const parseEnvironmentsSettings = (variable: string, text: string): EnvironmentsSettings => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ConfigError(`Cannot use ${variable}: it is no JSON`)
  }
  const parsed = environmentsSettings.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const where = issue?.path.map(String).join('.') ?? ''
  throw new ConfigError(`Cannot use ${variable}: ${where === '' ? '' : `${where}: `}${issue?.message ?? 'invalid'}`)
}
