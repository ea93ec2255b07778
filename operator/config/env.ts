import { z } from 'zod'
import { hostAndPort } from '../../runtime/config/listen-address.ts'
import { LOG_LEVELS } from '../../runtime/log/json-log.ts'

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(least).max(most))

/** A whole number within bounds, left out: `fallback`. */
const count = (least: number, most: number, fallback: number, description: string) =>
  wholeNumber(least, most).default(fallback).describe(description)

/** A whole number within bounds whose default depends on where databases run. */
const optionalCount = (least: number, most: number, description: string) =>
  wholeNumber(least, most).optional().describe(description)

const FIGURES = /^cpu=[^,=]+,memory=[^,=]+,storage=[^,=]+,maxConnections=\d{1,5}$/
const figures = (kind: string, fallback: string) =>
  z
    .string()
    .regex(FIGURES, 'must look like cpu=1,memory=512Mi,storage=5Gi,maxConnections=100')
    .default(fallback)
    .describe(
      `Figures of a ${kind} environment whose resource names none (made with kubectl alone); those in force stay`,
    )

/** The variables that the operator reads. */
export const operatorEnv = z.object({
  SERVICE_OPERATOR_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be a namespace name')
    .default('svc-system')
    .describe('Namespace of the operator’s own resources: where it leaves DeletionRecords'),
  SERVICE_OPERATOR_CONCURRENCY: count(1, 256, 16, 'Environments that are worked on at once'),
  SERVICE_OPERATOR_RESYNC_SECONDS: optionalCount(
    5,
    86_400,
    'How often an environment is looked at when nothing happens, give or take a fifth; by default 30, on Kubernetes 600',
  ),
  SERVICE_OPERATOR_PROOF_SECONDS: optionalCount(
    5,
    86_400,
    'How often a sign-in to a ready environment is proven again; by default 300, on Kubernetes 3600',
  ),
  SERVICE_OPERATOR_ATTEMPT_SECONDS: count(
    10,
    86_400,
    300,
    'How long bringing Postgres up may take before the environment is failed_recoverable; it is tried again',
  ),
  SERVICE_DELETION_RECORD_DAYS: count(1, 3650, 30, 'How long a DeletionRecord waits for an API server to read it'),
  SERVICE_DEFAULT_PRODUCTION_FIGURES: figures('production', 'cpu=2,memory=1Gi,storage=20Gi,maxConnections=200'),
  SERVICE_DEFAULT_STAGING_FIGURES: figures('staging', 'cpu=1,memory=512Mi,storage=5Gi,maxConnections=100'),
  SERVICE_DEFAULT_PREVIEW_FIGURES: figures('preview', 'cpu=500m,memory=256Mi,storage=1Gi,maxConnections=50'),
})

/** What an operator of its own is told, on Kubernetes: on the single box the box decides these. */
export const operatorProcessEnv = z.object({
  SERVICE_METRICS_LISTEN: hostAndPort.default('127.0.0.1:9464').describe('Where /metrics, /livez and /readyz listen'),
  SERVICE_LOG_LEVEL: z.enum(LOG_LEVELS).default('info').describe('The lowest level that is logged'),
  SERVICE_OPERATOR_WATCH_IDLE_SECONDS: count(
    2,
    3600,
    90,
    'How long a watch of the cluster may be silent until it is opened anew: a connection that died without a word looks like that. The API server sends something once a minute',
  ),
  SERVICE_OPERATOR_IDENTITY: z
    .string()
    .regex(/^[\w.-]{1,200}$/, 'must be letters, digits, -, _ and .')
    .optional()
    .describe('Who contends for the lease; by default the host’s name and a random part, so that no two are one'),
  SERVICE_ENVIRONMENTS: z
    .string()
    .default('{}')
    .describe(
      'What environments are given, as JSON: image, imagePullPolicy, imagePullSecrets, storageClass, requestShare, retentionDays; per kind graceSeconds, exposure and where pods run. The chart passes its values `environments` on',
    ),
})

/** This process' environment. The one place where the operator reads it. */
export const processEnvironment = (): Readonly<Record<string, string | undefined>> => process.env
