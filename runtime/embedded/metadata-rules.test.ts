import assert from 'node:assert/strict'
import type { ObjectMetadata } from '../../lib/model/resource.ts'
import { metadataViolations } from './metadata-rules.ts'

const metadata = (changes: Partial<ObjectMetadata>): ObjectMetadata => ({
  name: 'acme.app.pr-1',
  namespace: 'svc-acme',
  uid: '',
  resourceVersion: '',
  generation: 1,
  creationTimestamp: '',
  finalizers: [],
  labels: {},
  annotations: {},
  ownerReferences: [],
  ...changes,
})

describe('metadataViolations', () => {
  const refused = (changes: Partial<ObjectMetadata>): string[] =>
    metadataViolations(metadata(changes)).map(violation => violation.field)

  for (const changes of [
    {},
    { name: 'a' },
    { labels: { 'svc.internal/organization': 'acme', short: '', 'Upper_Case.9': 'x'.repeat(63) } },
    { annotations: { 'svc.internal/actor': 'any text at all\n🐘', UPPER: '' } },
    { finalizers: ['svc.internal/environment'] },
  ])
    it(`admits ${JSON.stringify(changes)}`, () => assert.deepEqual(refused(changes), []))

  for (const [field, changes] of [
    ['metadata.name', { name: '' }],
    ['metadata.name', { name: 'Capital' }],
    ['metadata.name', { name: 'ends-with-' }],
    ['metadata.name', { name: 'two..dots' }],
    ['metadata.name', { name: 'new\nline' }],
    ['metadata.name', { name: 'x'.repeat(254) }],
    ['metadata.namespace', { namespace: 'with.dot' }],
    ['metadata.namespace', { namespace: 'x'.repeat(64) }],
    ['metadata.labels', { labels: { '': 'x' } }],
    ['metadata.labels', { labels: { 'UPPER.case/key': 'x' } }],
    ['metadata.labels', { labels: { key: '-x' } }],
    ['metadata.labels', { labels: { key: 'x'.repeat(64) } }],
    ['metadata.labels', { labels: { key: 1 as unknown as string } }],
    ['metadata.annotations', { annotations: { key: null as unknown as string } }],
    ['metadata.annotations', { annotations: { key: 'x'.repeat(256 * 1024) } }],
    ['metadata.finalizers', { finalizers: ['noprefix'] }],
    ['metadata.finalizers', { finalizers: ['a/b/c'] }],
  ] as const)
    it(`refuses ${field} in ${JSON.stringify(changes).slice(0, 60)}`, () => assert.deepEqual(refused(changes), [field]))
})
