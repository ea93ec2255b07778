import assert from 'node:assert/strict'
import { ConfigError } from '../../runtime/config/parse-env.ts'
import { apiServerConfig } from './config.ts'
import { apiServerEnv, standaloneEnv } from './env.ts'

describe('the API server’s configuration', () => {
  it('has a default for everything that the single box does not decide', () => {
    const config = apiServerConfig({})
    assert.deepEqual(config.listen, { host: '127.0.0.1', port: 8080 })
    assert.equal(config.publicUrl, '')
    assert.equal(config.publicSignup, false)
    assert.equal(config.plan.caps.environmentsPerProject, undefined)
    assert.equal(config.limits.requestsPerMinute, 3000)
  })

  it('describes every variable', () => {
    for (const [name, schema] of [...Object.entries(apiServerEnv.shape), ...Object.entries(standaloneEnv.shape)]) {
      assert.match(name, /^SERVICE_[A-Z_]+$/)
      assert.ok((schema.description ?? '').length > 10, name)
    }
  })

  it('takes an empty variable for one that is not set', () => {
    assert.equal(apiServerConfig({ SERVICE_LISTEN: '', SERVICE_RATE_LIMIT_PER_MINUTE: '' }).listen.port, 8080)
  })

  it('reads IPv6 addresses, proxies and a public URL', () => {
    const config = apiServerConfig({
      SERVICE_LISTEN: '[::1]:9000',
      SERVICE_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
      SERVICE_PUBLIC_URL: 'https://db.example.com/',
    })
    assert.deepEqual(config.listen, { host: '::1', port: 9000 })
    assert.equal(config.trustedProxies.length, 2)
    assert.equal(config.publicUrl, 'https://db.example.com')
  })

  const bad: [variable: string, value: string][] = [
    ['SERVICE_LISTEN', '8080'],
    ['SERVICE_LISTEN', '127.0.0.1:99999'],
    ['SERVICE_TRUSTED_PROXIES', '10.0.0.0/40'],
    ['SERVICE_RATE_LIMIT_PER_MINUTE', '-1'],
    ['SERVICE_RATE_LIMIT_PER_MINUTE', '1e3'],
    ['SERVICE_PREVIEW_DEFAULT_TTL_HOURS', '9000'],
    ['SERVICE_PUBLIC_SIGNUP', 'yes'],
    ['SERVICE_PUBLIC_URL', 'ftp://example.com'],
    ['SERVICE_PLAN_STORAGE', '10 GB'],
    ['SERVICE_LOG_LEVEL', 'loud'],
  ]
  for (const [variable, value] of bad)
    it(`refuses ${variable}=${value} and names it`, () => {
      assert.throws(
        () => apiServerConfig({ [variable]: value }),
        (error: unknown) => error instanceof ConfigError && error.message.includes(variable),
      )
    })
})
