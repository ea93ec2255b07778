import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { ConfigError } from '../../runtime/config/parse-env.ts'
import { parseEnvironmentsSettings } from './environments-settings.ts'

const settings = (value: unknown) => parseEnvironmentsSettings('SERVICE_ENVIRONMENTS', JSON.stringify(value))

describe('parseEnvironmentsSettings', () => {
  it('takes what the chart has by default', () => {
    const values = parse(readFileSync(new URL('../../charts/svc-platform/values.yaml', import.meta.url), 'utf8')) as {
      environments: object
    }
    assert.deepEqual(settings(values.environments), values.environments)
  })

  it('passes on what is about pods as it is', () => {
    const production = {
      affinity: { nodeAffinity: { x: 1 } },
      tolerations: [{ key: 'db', operator: 'Exists' }],
      exposure: { type: 'LoadBalancer', sourceRanges: ['10.0.0.0/8'] },
    }
    assert.deepEqual(settings({ production }), { production })
  })

  for (const [value, named] of [
    [{ imagePullPolicy: 'Sometimes' }, 'imagePullPolicy'],
    [{ requestShare: { cpu: 2 } }, 'requestShare.cpu'],
    [{ staging: { exposure: { type: 'NodePort' } } }, 'staging.exposure.host'],
    [{ colour: 'blue' }, 'colour'],
    [[], 'expected object'],
  ] as const)
    it(`refuses ${JSON.stringify(value)} by name`, () => {
      assert.throws(
        () => settings(value),
        (error: unknown) => error instanceof ConfigError && error.message.includes(named),
      )
    })

  it('refuses what is no JSON', () => {
    assert.throws(() => parseEnvironmentsSettings('SERVICE_ENVIRONMENTS', '{'), /SERVICE_ENVIRONMENTS: it is no JSON/)
  })
})
