/**
 * What the kinds' schemas and rules admit and refuse, at creation (no `old`) and at updates. Every store must judge these
 * alike: the embedded one by `check`, a Kubernetes API server by the CEL of the same rule.
 */
import { DELETION_RECORD_RULES, ENVIRONMENT_RULES } from '../crds/rules.ts'

/** What a case is about: spec fields over a valid object's; undefined takes a field away. */
export interface CaseObject {
  readonly name?: string
  readonly spec?: Readonly<Record<string, unknown>>
}

export interface RuleCase {
  readonly why: string
  readonly kind: 'Environment' | 'DeletionRecord'
  readonly old?: CaseObject
  readonly next: CaseObject
  /** Absent: admitted. `rule` is the message of the one rule that refuses, `field` where the schema refuses. */
  readonly refused?: { readonly rule?: string; readonly field: string }
}

const BASE = {
  Environment: {
    name: 'acme.shop.main',
    spec: { organizationId: 'acme', projectId: 'shop', environmentId: 'main', kind: 'staging' },
  },
  DeletionRecord: {
    name: 'environment-0b3f',
    spec: {
      uid: '0b3f',
      name: 'acme.shop.main',
      namespace: 'svc-acme-shop',
      organizationId: 'acme',
      projectId: 'shop',
      environmentId: 'main',
      cause: 'ttl',
      deletedAt: '2026-01-01T00:00:00Z',
      retained: false,
    },
  },
}

/** The name and whole spec of a case's object. */
export const caseObject = (
  kind: RuleCase['kind'],
  object: CaseObject,
): { name: string; spec: Record<string, unknown> } => {
  const spec: Record<string, unknown> = { ...BASE[kind].spec, ...object.spec }
  return {
    name: object.name ?? BASE[kind].name,
    spec: Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)),
  }
}

const ruleNamed = (name: string): { rule: string; field: string } => {
  const rule = [...ENVIRONMENT_RULES, ...DELETION_RECORD_RULES].find(candidate => candidate.name === name)
  if (rule === undefined) throw new RangeError(`No rule is named "${name}"`)
  return { rule: rule.message, field: rule.field }
}

type Spec = Readonly<Record<string, unknown>>

const created = (why: string, spec: Spec, refused?: string, name?: string): RuleCase => ({
  why,
  kind: 'Environment',
  next: name === undefined ? { spec } : { spec, name },
  ...(refused !== undefined && { refused: ruleNamed(refused) }),
})
const changed = (why: string, old: Spec, next: Spec, refused?: string): RuleCase => ({
  why,
  kind: 'Environment',
  old: { spec: old },
  next: { spec: next },
  ...(refused !== undefined && { refused: ruleNamed(refused) }),
})
const malformed = (why: string, spec: Spec, field: string): RuleCase => ({
  why,
  kind: 'Environment',
  next: { spec },
  refused: { field },
})

const PREVIEW = { kind: 'preview' }
const request = (seq: number, id = `op_${seq}`, verb = 'create'): Spec => ({ request: { id, seq, verb } })
const storage = (size: string): Spec => ({ resources: { storage: size } })

const NAME = 'the name is the identity'
const STORAGE = 'storage only grows'
const SEQ = 'the request number only rises, and names one request'
const CALENDAR = 'expiresAt exists in the calendar'

const ENVIRONMENT_CASES: readonly RuleCase[] = [
  created('the least there can be', {}),
  created('ids of 64 characters', { environmentId: 'a'.repeat(64) }, undefined, `acme.shop.${'a'.repeat(64)}`),
  created('a name without its organization', {}, NAME, 'shop.main'),
  created('the name of another environment', { environmentId: 'other' }, NAME),
  created('the name of another project', { projectId: 'other' }, NAME),
  created('the name of another organization', { organizationId: 'other' }, NAME),
  changed('the environment of an object changes', {}, { environmentId: 'other' }, 'environmentId is immutable'),
  changed('the project of an object changes', {}, { projectId: 'other' }, 'projectId is immutable'),
  changed('the organization of an object changes', {}, { organizationId: 'other' }, 'organizationId is immutable'),
  changed('a preview becomes production', PREVIEW, { kind: 'production' }, 'kind is immutable'),
  changed('nothing changes', PREVIEW, PREVIEW),
  changed('what may change changes', { suspended: false }, { suspended: true, deletionProtection: true, region: 'eu' }),
  changed(
    'dataMode changes',
    { dataMode: 'snapshot' },
    { dataMode: 'schema_only' },
    'dataMode is set at creation or never',
  ),
  changed('dataMode comes later', {}, { dataMode: 'snapshot' }, 'dataMode is set at creation or never'),
  changed('dataMode goes away', { dataMode: 'snapshot' }, {}, 'dataMode is set at creation or never'),
  changed('dataMode stays', { dataMode: 'snapshot' }, { dataMode: 'snapshot', suspended: true }),
  changed(
    'the source comes later',
    {},
    { sourceEnvironmentId: 'prod' },
    'sourceEnvironmentId is set at creation or never',
  ),
  changed(
    'the source goes away',
    { sourceEnvironmentId: 'prod' },
    {},
    'sourceEnvironmentId is set at creation or never',
  ),
  changed('the source stays', { sourceEnvironmentId: 'prod' }, { sourceEnvironmentId: 'prod', suspended: true }),
  changed('postgresMajor comes later', {}, { postgresMajor: 17 }, 'postgresMajor is set at creation or never'),
  changed('postgresMajor stays', { postgresMajor: 17 }, { postgresMajor: 17, suspended: true }),
  created('a source', { sourceEnvironmentId: 'prod' }),
  created('itself as source', { sourceEnvironmentId: 'main' }, 'an environment is not its own source'),
  created('a preview with a time to live', { ...PREVIEW, ttlHours: 24 }),
  created('a preview with an expiry', { ...PREVIEW, expiresAt: '2026-02-28T23:59:59Z' }),
  created('staging with a time to live', { ttlHours: 24 }, 'ttlHours is for previews'),
  created(
    'production with an expiry',
    { kind: 'production', expiresAt: '2026-02-28T00:00:00Z' },
    'expiresAt is for previews',
  ),
  changed('staging is given an expiry', {}, { expiresAt: '2026-02-28T00:00:00Z' }, 'expiresAt is for previews'),
  changed(
    'a preview is renewed',
    { ...PREVIEW, expiresAt: '2026-01-01T00:00:00Z' },
    { ...PREVIEW, expiresAt: '2026-01-02T00:00:00.5Z' },
  ),
  created('29 February of a leap year', { ...PREVIEW, expiresAt: '2028-02-29T00:00:00Z' }),
  created('29 February of another year', { ...PREVIEW, expiresAt: '2027-02-29T00:00:00Z' }, CALENDAR),
  created('31 April', { ...PREVIEW, expiresAt: '2027-04-31T00:00:00Z' }, CALENDAR),
  created('month 13', { ...PREVIEW, expiresAt: '2027-13-01T00:00:00Z' }, CALENDAR),
  created('day 0', { ...PREVIEW, expiresAt: '2027-01-00T00:00:00Z' }, CALENDAR),
  created('hour 24', { ...PREVIEW, expiresAt: '2027-01-01T24:00:00Z' }, CALENDAR),
  created('minute 60', { ...PREVIEW, expiresAt: '2027-01-01T00:60:00Z' }, CALENDAR),
  created('a leap second', { ...PREVIEW, expiresAt: '2016-12-31T23:59:60Z' }, CALENDAR),
  created('year 0', { ...PREVIEW, expiresAt: '0000-06-01T00:00:00Z' }, CALENDAR),
  created('year 1', { ...PREVIEW, expiresAt: '0001-01-01T00:00:00Z' }),
  created('year 9999, nanoseconds', { ...PREVIEW, expiresAt: '9999-12-31T23:59:59.999999999Z' }),
  changed('storage grows', storage('1Gi'), storage('2Gi')),
  changed('storage stays, said otherwise', storage('1Gi'), storage('1024Mi')),
  changed('storage grows from Mi to Gi', storage('999Mi'), storage('1Gi')),
  changed('storage shrinks', storage('2Gi'), storage('1Gi'), STORAGE),
  changed('storage shrinks from Gi to Mi', storage('1Gi'), storage('1023Mi'), STORAGE),
  changed('storage is said for the first time', {}, storage('1Gi')),
  changed(
    'storage is said beside other figures',
    { resources: { memory: '1Gi' } },
    { resources: { memory: '1Gi', storage: '1Gi' } },
  ),
  changed('storage is no longer said', storage('1Gi'), { resources: { memory: '1Gi' } }, STORAGE),
  changed('no figure is said any more', storage('1Gi'), {}, STORAGE),
  changed(
    'figures other than storage shrink',
    { resources: { memory: '2Gi', cpu: '2' } },
    { resources: { memory: '1Gi', cpu: '500m' } },
  ),
  created('a first request', request(1)),
  changed('a request comes', {}, request(1)),
  changed('the next request', request(1), request(2, 'op_2', 'suspend')),
  changed('a request that skips numbers', request(1), request(9)),
  changed('a request is taken back', request(1), {}, 'a request is not taken back'),
  changed('an earlier request', request(2), request(1), SEQ),
  changed('another request under the same number', request(2), request(2, 'op_x'), SEQ),
  changed('another verb under the same number', request(2), request(2, 'op_2', 'delete'), SEQ),
  changed('the same request again, something else changed', request(2), { ...request(2), suspended: true }),
  malformed('no organization', { organizationId: undefined }, 'spec.organizationId'),
  malformed('an id with a dot', { projectId: 'a.b' }, 'spec.projectId'),
  malformed('an id with a line break at its end', { projectId: 'shop\n' }, 'spec.projectId'),
  malformed('an id of one character', { projectId: 'a' }, 'spec.projectId'),
  malformed('an id of 65 characters', { projectId: 'a'.repeat(65) }, 'spec.projectId'),
  malformed('a kind that does not exist', { kind: 'Preview' }, 'spec.kind'),
  malformed('no kind', { kind: undefined }, 'spec.kind'),
  created('null instead of nothing', { region: null }),
  malformed('null instead of something', { kind: null }, 'spec.kind'),
  malformed(
    'null inside the figures is nothing, a wrong one beside it is not',
    { resources: { cpu: null, memory: '1' } },
    'spec.resources.memory',
  ),
  malformed('an empty region', { region: '' }, 'spec.region'),
  malformed('a time to live of 0', { ...PREVIEW, ttlHours: 0 }, 'spec.ttlHours'),
  malformed('a time to live of over a year', { ...PREVIEW, ttlHours: 8761 }, 'spec.ttlHours'),
  malformed('half an hour to live', { ...PREVIEW, ttlHours: 0.5 }, 'spec.ttlHours'),
  malformed('a time to live in letters', { ...PREVIEW, ttlHours: '24' }, 'spec.ttlHours'),
  malformed('an expiry with an offset', { ...PREVIEW, expiresAt: '2026-01-01T00:00:00+01:00' }, 'spec.expiresAt'),
  malformed('an expiry without a time', { ...PREVIEW, expiresAt: '2026-01-01' }, 'spec.expiresAt'),
  malformed('Postgres 16', { postgresMajor: 16 }, 'spec.postgresMajor'),
  malformed('storage in G', storage('1G'), 'spec.resources.storage'),
  malformed('storage of 0', storage('0Gi'), 'spec.resources.storage'),
  malformed('4 connections', { resources: { maxConnections: 4 } }, 'spec.resources.maxConnections'),
  malformed('a request of number 0', request(0), 'spec.request.seq'),
  malformed('a request without a verb', { request: { id: 'op_1', seq: 1 } }, 'spec.request.verb'),
  malformed('an unknown verb', request(1, 'op_1', 'renew'), 'spec.request.verb'),
]

const record = (why: string, old: Spec | undefined, next: Spec, refused?: string, name?: string): RuleCase => ({
  why,
  kind: 'DeletionRecord',
  ...(old !== undefined && { old: { spec: old } }),
  next: name === undefined ? { spec: next } : { spec: next, name },
  ...(refused !== undefined && { refused: ruleNamed(refused) }),
})

const RECORD_CASES: readonly RuleCase[] = [
  record('a record', undefined, {}),
  record('a record of kept data', undefined, {
    retained: true,
    retainedAt: '/trash/x',
    retainedUntil: '2026-01-08T00:00:00Z',
  }),
  record('kept data without a place', undefined, { retained: true }, 'kept data has a place'),
  record('a place without kept data', undefined, { retainedAt: '/trash/x' }, 'kept data has a place'),
  record('a record under a foreign name', undefined, {}, 'a record is named after what is gone', 'environment-ffff'),
  record('a record stays', {}, {}),
  record('a record is rewritten', {}, { cause: 'external' }, 'a record is never rewritten'),
  {
    why: 'a cause that does not exist',
    kind: 'DeletionRecord',
    next: { spec: { cause: 'boredom' } },
    refused: { field: 'spec.cause' },
  },
]

export const RULE_CASES: readonly RuleCase[] = [...ENVIRONMENT_CASES, ...RECORD_CASES]
