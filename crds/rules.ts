/**
 * Every rule over more than one field, or over old and new, once: in CEL for Kubernetes' API server, as a function for
 * the embedded store. testkit/rule-cases.ts holds the cases that both must judge alike.
 *
 * Traps of CEL: ask `has(self.x)` for an optional field, a comparison with null does not compile; a rule that names
 * `oldSelf` is judged at updates only; of the metadata a rule on the root sees the name alone.
 */
import { isDeepStrictEqual } from 'node:util'
import { environmentName } from '../lib/model/identifiers.ts'
import { quantityToBytes } from '../lib/model/quantity.ts'
import type { Resource } from '../lib/model/resource.ts'
import { type DeletionRecord, deletionRecordName } from './deletion-record.ts'
import type { Environment, EnvironmentSpec } from './environment.ts'

export interface Rule<R extends Resource> {
  /** For tests and people: says what must hold. */
  readonly name: string
  /** The path of what `self` is in `cel`: the whole object, its spec or one field. */
  readonly scope: '' | 'spec' | `spec.${string}`
  /** The field that a violation names. */
  readonly field: string
  readonly cel: string
  /** Why it is refused, for people. */
  readonly message: string
  /** Whether it holds; `old` is undefined at creation. A RangeError counts as no. */
  readonly check: (next: R, old: R | undefined) => boolean
}

type EnvironmentRule = Rule<Environment>

/** A required field that keeps its first value. */
const immutable = (field: 'organizationId' | 'projectId' | 'environmentId' | 'kind'): EnvironmentRule => ({
  name: `${field} is immutable`,
  scope: 'spec',
  field: `spec.${field}`,
  cel: `self.${field} == oldSelf.${field}`,
  message: `${field} is immutable`,
  check: (next, old) => old === undefined || next.spec[field] === old.spec[field],
})

/** An optional field that is given at creation or never. */
const setAtCreation = (field: 'dataMode' | 'sourceEnvironmentId' | 'postgresMajor'): EnvironmentRule => ({
  name: `${field} is set at creation or never`,
  scope: 'spec',
  field: `spec.${field}`,
  cel: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message: `${field} can be set at creation only`,
  check: (next, old) => old === undefined || next.spec[field] === old.spec[field],
})

const onPreviewsOnly = (field: 'ttlHours' | 'expiresAt'): EnvironmentRule => ({
  name: `${field} is for previews`,
  scope: 'spec',
  field: `spec.${field}`,
  cel: `!has(self.${field}) || self.kind == 'preview'`,
  message: `${field} is allowed on kind preview only`,
  check: ({ spec }) => spec[field] === undefined || spec.kind === 'preview',
})

/** Whether a text of the right form is a moment that exists: no 30 February, no hour 24. */
const isMoment = (text: string): boolean => {
  const moment = new Date(text)
  return (
    !Number.isNaN(moment.getTime()) &&
    moment.toISOString().slice(0, 19) === text.slice(0, 19) &&
    !text.startsWith('0000')
  )
}

const storageOf = (spec: EnvironmentSpec): string | undefined => spec.resources?.storage

export const ENVIRONMENT_RULES: readonly EnvironmentRule[] = [
  {
    name: 'the name is the identity',
    scope: '',
    field: 'metadata.name',
    cel: "self.metadata.name == self.spec.organizationId + '.' + self.spec.projectId + '.' + self.spec.environmentId",
    message: 'metadata.name must be <organizationId>.<projectId>.<environmentId>',
    check: ({ metadata, spec }) => metadata.name === environmentName(spec),
  },
  immutable('organizationId'),
  immutable('projectId'),
  immutable('environmentId'),
  immutable('kind'),
  setAtCreation('dataMode'),
  setAtCreation('sourceEnvironmentId'),
  setAtCreation('postgresMajor'),
  {
    name: 'an environment is not its own source',
    scope: 'spec',
    field: 'spec.sourceEnvironmentId',
    cel: '!has(self.sourceEnvironmentId) || self.sourceEnvironmentId != self.environmentId',
    message: 'sourceEnvironmentId must name another environment',
    check: ({ spec }) => spec.sourceEnvironmentId === undefined || spec.sourceEnvironmentId !== spec.environmentId,
  },
  onPreviewsOnly('ttlHours'),
  onPreviewsOnly('expiresAt'),
  {
    // An expiry that cannot be read would either never or at once delete an environment.
    name: 'expiresAt exists in the calendar',
    // Of the field: a text that is no time fails in the middle of the rule, and then only the scope is named.
    scope: 'spec.expiresAt',
    field: 'spec.expiresAt',
    cel: "timestamp(self) >= timestamp('0001-01-01T00:00:00Z')",
    message: 'expiresAt must be a moment that exists',
    check: ({ spec }) => spec.expiresAt === undefined || isMoment(spec.expiresAt),
  },
  {
    name: 'storage only grows',
    scope: 'spec',
    field: 'spec.resources',
    cel: [
      '!has(oldSelf.resources) || !has(oldSelf.resources.storage)',
      '|| (has(self.resources) && has(self.resources.storage)',
      '&& quantity(self.resources.storage).compareTo(quantity(oldSelf.resources.storage)) >= 0)',
    ].join(' '),
    message: 'resources.storage may only grow, and stays once it is set',
    check: (next, old) => {
      const before = old === undefined ? undefined : storageOf(old.spec)
      const after = storageOf(next.spec)
      return before === undefined || (after !== undefined && quantityToBytes(after) >= quantityToBytes(before))
    },
  },
  {
    name: 'a request is not taken back',
    scope: 'spec',
    field: 'spec.request',
    cel: '!has(oldSelf.request) || has(self.request)',
    message: 'request cannot be removed',
    check: (next, old) => old?.spec.request === undefined || next.spec.request !== undefined,
  },
  {
    name: 'the request number only rises, and names one request',
    scope: 'spec',
    field: 'spec.request',
    cel: '!has(oldSelf.request) || !has(self.request) || self.request.seq > oldSelf.request.seq || self.request == oldSelf.request',
    message: 'request.seq must rise with every new request',
    check: (next, old) => {
      const [before, after] = [old?.spec.request, next.spec.request]
      return (
        before === undefined ||
        after === undefined ||
        after.seq > before.seq ||
        isDeepStrictEqual({ ...after }, { ...before })
      )
    },
  },
]

export const DELETION_RECORD_RULES: readonly Rule<DeletionRecord>[] = [
  {
    name: 'a record is named after what is gone',
    scope: '',
    field: 'metadata.name',
    cel: "self.metadata.name == 'environment-' + self.spec.uid",
    message: 'metadata.name must be environment-<uid>',
    check: ({ metadata, spec }) => metadata.name === deletionRecordName(spec.uid),
  },
  {
    name: 'a record is never rewritten',
    scope: 'spec',
    field: 'spec',
    cel: 'self == oldSelf',
    message: 'a DeletionRecord is immutable',
    check: (next, old) => old === undefined || isDeepStrictEqual(next.spec, old.spec),
  },
  {
    name: 'kept data has a place',
    scope: 'spec',
    field: 'spec.retainedAt',
    cel: 'self.retained == has(self.retainedAt)',
    message: 'retainedAt is given exactly when data was retained',
    check: ({ spec }) => spec.retained === (spec.retainedAt !== undefined),
  },
]
