import assert from 'node:assert/strict'
import { apiServerConfig } from '../../apiserver/config/config.ts'
import { standaloneEnv } from '../../apiserver/config/env.ts'
import { operatorConfig } from '../../operator/config/config.ts'
import { parseMasterKey, parseMasterKeys } from '../../runtime/config/master-keys.ts'
import { ConfigError, type Environment, parseEnv } from '../../runtime/config/parse-env.ts'
import { boxConfig } from './config.ts'

const isConfigError = (words: RegExp) => (error: unknown) => error instanceof ConfigError && words.test(error.message)

describe('settings', () => {
  const parts: [name: string, read: (environment: Environment) => unknown, variable: string, value: string][] = [
    ['the API server', apiServerConfig, 'SERVICE_LISTEN', '8080'],
    ['the operator', operatorConfig, 'SERVICE_OPERATOR_CONCURRENCY', '0'],
    ['the operator, in a figure', operatorConfig, 'SERVICE_DEFAULT_PREVIEW_FIGURES', 'cpu=1'],
    ['the box', boxConfig, 'SERVICE_POSTGRES_LISTEN', 'everywhere'],
    ['the box, in a range', boxConfig, 'SERVICE_POSTGRES_PORTS', '9999-1024'],
    ['the box, without a name', boxConfig, 'SERVICE_POSTGRES_LISTEN', '0.0.0.0'],
  ]
  for (const [name, read, variable, value] of parts)
    it(`that ${name} cannot use are one kind of error`, () => {
      assert.throws(() => read({ [variable]: value }), isConfigError(/^Cannot use SERVICE_[A-Z_]+: ./))
    })

  it('that are empty count as not set, for every part', () => {
    const empty = { SERVICE_LISTEN: '', SERVICE_OPERATOR_CONCURRENCY: '', SERVICE_POSTGRES_LISTEN: '' }
    for (const read of [apiServerConfig, operatorConfig, boxConfig]) assert.deepEqual(read(empty), read({}))
  })

  it('that are missing are named', () => {
    assert.throws(() => parseEnv(standaloneEnv, {}), isConfigError(/^Cannot use SERVICE_DATABASE_URL: it must be set$/))
  })
})

describe('a master key', () => {
  const key = (byte: number): string => Buffer.alloc(32, byte).toString('base64')

  it('is 32 bytes in base64, in lists too', () => {
    assert.deepEqual(parseMasterKey('K', `${key(1)}\n`), Buffer.alloc(32, 1))
    assert.deepEqual(parseMasterKeys('K', `${key(1)}, ${key(2)},`), [Buffer.alloc(32, 1), Buffer.alloc(32, 2)])
    assert.deepEqual(parseMasterKeys('K', ''), [])
  })

  it('that is none is refused by the name of its place and never shown', () => {
    for (const text of ['c2VjcmV0', 'not base64 at all', `${key(0)}x`, key(0).slice(0, -1)])
      assert.throws(
        () => parseMasterKeys('SERVICE_KMS_MASTER_KEY', text),
        (error: unknown) => isConfigError(/SERVICE_KMS_MASTER_KEY/)(error) && !(error as Error).message.includes(text),
      )
  })
})
