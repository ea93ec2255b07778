import assert from 'node:assert/strict'
import { operatorConfig } from './config.ts'

describe('operatorConfig', () => {
  it('has an answer for every variable that is left out, and takes an empty one as left out', () => {
    const config = operatorConfig({ SERVICE_OPERATOR_NAMESPACE: '', SERVICE_OPERATOR_CONCURRENCY: '' })
    assert.equal(config.namespace, 'svc-system')
    assert.equal(config.concurrency, 16)
    assert.deepEqual(config.defaults.preview, { cpu: '500m', memory: '256Mi', storage: '1Gi', maxConnections: 50 })
  })

  it('turns seconds and days into milliseconds', () => {
    const config = operatorConfig({ SERVICE_OPERATOR_RESYNC_SECONDS: '10', SERVICE_DELETION_RECORD_DAYS: '2' })
    assert.equal(config.resyncMs, 10_000)
    assert.equal(config.keepDeletionRecordsMs, 172_800_000)
  })

  for (const [variable, value] of [
    ['SERVICE_OPERATOR_CONCURRENCY', '0'],
    ['SERVICE_OPERATOR_CONCURRENCY', 'many'],
    ['SERVICE_OPERATOR_NAMESPACE', 'Not A Namespace'],
    ['SERVICE_DEFAULT_PREVIEW_FIGURES', 'cpu=1'],
    ['SERVICE_DEFAULT_PREVIEW_FIGURES', 'cpu=1,memory=lots,storage=1Gi,maxConnections=50'],
    ['SERVICE_DEFAULT_PREVIEW_FIGURES', 'cpu=1,memory=1Gi,storage=1Gi,maxConnections=1'],
  ] as const)
    it(`refuses ${variable}=${value} by name`, () => {
      assert.throws(() => operatorConfig({ [variable]: value }), new RegExp(`Cannot use ${variable}: `))
    })
})
