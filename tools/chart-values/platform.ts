/** The schema of the values of `charts/svc-platform`. Settings are those that the programs read, so that a misspelt one is refused. */
import { z } from 'zod'
import { apiServerEnv } from '../../apiserver/config/env.ts'
import { ENVIRONMENT_KINDS } from '../../lib/model/environment.ts'
import { operatorEnv, operatorProcessEnv } from '../../operator/config/env.ts'
import {
  flag,
  listOf,
  nodeSelector,
  object,
  objectName,
  oneOf,
  passedThrough,
  peers,
  quantity,
  resources,
  type Schema,
  share,
  text,
  texts,
  tolerations,
  whole,
} from './schema.ts'

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never']

/** What the chart sets itself. */
const SET_BY_CHART = [
  'SERVICE_ENVIRONMENTS',
  'SERVICE_LISTEN',
  'SERVICE_METRICS_LISTEN',
  'SERVICE_OPERATOR_IDENTITY',
  'SERVICE_OPERATOR_NAMESPACE',
  'SERVICE_PUBLIC_URL',
]

/** What values never hold, since whoever reads a release reads its values: each comes from a key of a Secret. */
const SECRET_SETTINGS: readonly string[] = [
  'SERVICE_ADMIN_PASSWORD_HASH',
  'SERVICE_DEFAULT_SMTP_PASSWORD',
  'SERVICE_MAIL_WEBHOOK_TOKEN',
  'SERVICE_OIDC_CLIENT_SECRET',
] satisfies (keyof typeof apiServerEnv.shape)[]

/** What names a file: nothing of the user's is in the image, so each is mounted from where the user keeps it. */
const FILE_SETTINGS: readonly string[] = [
  'SERVICE_MAIL_CA_FILE',
  'SERVICE_OIDC_CA_FILE',
  'SERVICE_SSO_CA_FILE',
] satisfies (keyof typeof apiServerEnv.shape)[]

const secretKey = { secretName: objectName('A Secret of yours'), key: text('Its key', { minLength: 1 }) }

/** One member for each of these settings, which says where it comes from. */
const settingsFrom = (description: string, names: readonly string[], source: (of: string) => Schema): Schema =>
  object(
    description,
    Object.fromEntries(
      Object.entries(apiServerEnv.shape)
        .filter(([name]) => names.includes(name))
        .map(([name, field]) => [name, source((field as z.ZodType).description ?? '')]),
    ),
  )

const secretSettings = settingsFrom('Settings that are secrets, by their names', SECRET_SETTINGS, description =>
  object(description, secretKey, ['secretName', 'key']),
)

const fileSettings = settingsFrom('Settings that name a file, by their names', FILE_SETTINGS, description => ({
  ...object(
    `${description}: a key of a ConfigMap or of a Secret`,
    { ...secretKey, configMapName: objectName('A ConfigMap of yours') },
    ['key'],
  ),
  oneOf: [{ required: ['configMapName'] }, { required: ['secretName'] }],
}))

/** The variables of a program, each with its description; written as text or, where they are one, as a number. */
const settings = (description: string, env: z.ZodObject): Schema =>
  object(
    description,
    Object.fromEntries(
      Object.entries(env.shape)
        .filter(([name]) => ![...SET_BY_CHART, ...SECRET_SETTINGS, ...FILE_SETTINGS].includes(name))
        .map(([name, field]) => [
          name,
          { description: (field as z.ZodType).description ?? '', type: ['string', 'integer'] },
        ]),
    ),
  )

const replicas = whole('How many; with more than one, a disruption budget keeps one', 1, 20)

const program = (description: string, env: z.ZodObject, more: Readonly<Record<string, Schema>> = {}): Schema =>
  object(description, {
    replicas,
    ...more,
    settings: settings('Settings by their names', env),
    resources,
    nodeSelector,
    tolerations,
  })

const exposure: Schema = object(
  'How they are reached from outside the cluster',
  {
    type: oneOf('None: not at all', ['None', 'NodePort', 'LoadBalancer']),
    host: text('For NodePort: a name or address of the nodes'),
    annotations: texts('For LoadBalancer: annotations of the Service'),
    loadBalancerClass: text('For LoadBalancer: which one'),
    sourceRanges: listOf('For LoadBalancer: networks that may connect; empty: everybody', text('A CIDR')),
  },
  ['type'],
)

const kindOfEnvironment = (kind: string): Schema =>
  object(`What ${kind} environments are given`, {
    graceSeconds: whole('How long Postgres may take to stop before it is killed', 5, 86_400),
    nodeSelector,
    tolerations,
    affinity: passedThrough('Where their pods are to be and not to be'),
    topologySpreadConstraints: listOf('How their pods are spread', passedThrough('A constraint')),
    priorityClassName: objectName('Priority of their pods; empty: the cluster’s default'),
    runtimeClassName: objectName('Runtime of their pods; empty: the cluster’s default'),
    schedulerName: objectName('Who places their pods; empty: the cluster’s default'),
    exposure,
  })

const environments = object('What environments are given', {
  image: text('Image of environments that name none', { minLength: 1 }),
  imagePullPolicy: oneOf('When nodes fetch it', PULL_POLICIES),
  storageClass: objectName('Class of their volumes; empty: the cluster’s default'),
  requestShare: object('The part of an environment’s limits that is reserved for it', {
    cpu: share('Of its CPU'),
    memory: share('Of its memory'),
  }),
  retentionDays: whole('How many days data is kept at least that outlives its environment', 0, 3650),
  ...Object.fromEntries(ENVIRONMENT_KINDS.map(kind => [kind, kindOfEnvironment(kind)])),
})

const database: Schema = {
  ...object('The control plane’s own database', {
    mode: oneOf('embedded: a Postgres in this namespace; external: one of yours', ['embedded', 'external']),
    external: object('Of mode external', {
      secretName: objectName('Secret with the URLs of one database'),
      urlKey: text('Its key with the URL as the role that serves', { minLength: 1 }),
      ownerUrlKey: text('Its key with the URL as the role that owns the database and migrates it', { minLength: 1 }),
      caKey: text(
        'Its key with the authorities (PEM) that sign your database’s certificate, where they are private: they are mounted for sslrootcert=/etc/svc/database/ca.crt',
      ),
    }),
    embedded: object('Of mode embedded', {
      image: text('Image of Postgres 17', { minLength: 1 }),
      storage: quantity('Size of its volume'),
      storageClass: objectName('Class of its volume; empty: the cluster’s default'),
      resources,
      nodeSelector,
      tolerations,
    }),
  }),
  if: { properties: { mode: { const: 'external' } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: {
    required: ['external'],
    properties: { external: { required: ['secretName'], properties: { secretName: { minLength: 1 } } } },
  },
}

const monitoring = object('For the Prometheus operator', {
  serviceMonitor: object('Has both programs scraped', {
    enabled: flag('Whether it is made'),
    interval: text('How often', { pattern: '^[0-9]+(ms|s|m)$' }),
    labels: texts('Labels by which your Prometheus selects it'),
  }),
  prometheusRule: object('Alerts', {
    enabled: flag('Whether it is made'),
    labels: texts('Labels by which your Prometheus selects it'),
  }),
})

/** The whole schema. */
export const platformValuesSchema = (): Schema => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Values of svc-platform',
  ...object('The control plane of svc', {
    image: object('The image of both programs', {
      repository: text('Its name', { minLength: 1 }),
      tag: text('Its tag', { pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$' }),
      digest: text('Instead of a tag: sha256:…', { pattern: '^(sha256:[0-9a-f]{64})?$' }),
      pullPolicy: oneOf('When nodes fetch it', PULL_POLICIES),
    }),
    imagePullSecrets: listOf('Names of Secrets with which images are fetched', objectName('A Secret')),
    apiServer: program('The API server', apiServerEnv, {
      publicUrl: text('The base URL that clients use; empty: links in problems are relative', {
        pattern: '^(https?://.+)?$',
      }),
      fileSettings,
      secretSettings,
      service: object('Its Service', {
        type: oneOf('Its type', ['ClusterIP', 'NodePort', 'LoadBalancer']),
        port: whole('Its port', 1, 65_535),
        annotations: texts('Its annotations'),
      }),
    }),
    operator: program('The operator', z.object({ ...operatorEnv.shape, ...operatorProcessEnv.shape })),
    environments,
    database,
    masterKey: object('What seals stored secrets', {
      secretName: objectName('A Secret of yours; empty: one is made once and kept'),
      key: text('Its key with 32 bytes in base64', { minLength: 1 }),
      previousKeysKey: text('Its key, if there, with earlier keys, separated by commas', { minLength: 1 }),
    }),
    priorityClass: object('Priority of the control plane’s pods', {
      create: flag('Whether the class is made'),
      name: objectName('Name of the class; empty: the cluster’s default'),
      value: whole('Its value, if it is made', 0, 1_000_000_000),
    }),
    networkPolicies: object('Who may reach the control plane’s pods', {
      enabled: flag('Whether they are made'),
      apiFrom: peers('Who may call the API; empty: everybody'),
      metricsFrom: peers('Who may read metrics; empty: every pod of the cluster'),
    }),
    monitoring,
    test: object('The pod of helm test', {
      timeoutSeconds: whole('How long its preview may take to become ready', 10, 3600),
    }),
    global: { description: 'Values that Helm shares between charts; none is read', type: 'object' },
  }),
})
