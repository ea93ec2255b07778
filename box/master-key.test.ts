import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '../runtime/config/parse-env.ts'
import { BoxError } from './box-error.ts'
import { readKeyring } from './master-key.ts'

const text = (byte: number): string => Buffer.alloc(32, byte).toString('base64')

describe('the keys of a box', () => {
  let folder: string
  let path: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-keys-'))
    path = join(folder, 'master.key')
  })
  afterEach(() => rmSync(folder, { recursive: true }))
  const read = (masterKey?: string, previousMasterKeys = '') => readKeyring(folder, { masterKey, previousMasterKeys })

  it('are made once and written only when they are kept', () => {
    const made = read()
    assert.deepEqual([made.isNew, made.current.length, existsSync(path)], [true, 32, false])
    made.keep()
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.deepEqual([read().isNew, read().current], [false, made.current])
  })

  it('are the configured one, which is never written down', () => {
    const keyring = read(text(1))
    keyring.keep()
    assert.deepEqual([keyring.current, existsSync(path)], [Buffer.alloc(32, 1), false])
  })

  it('are not two that differ, unless the one in the folder is named as a previous one', () => {
    writeFileSync(path, text(1))
    assert.throws(() => read(text(2)), BoxError)
    assert.throws(() => read(text(2), text(3)), BoxError)
    const rotated = read(text(2), `${text(3)},${text(1)}`)
    assert.deepEqual(rotated.current, Buffer.alloc(32, 2))
    assert.deepEqual(rotated.previous, [Buffer.alloc(32, 3), Buffer.alloc(32, 1)])
    assert.deepEqual(read(text(1)).current, Buffer.alloc(32, 1))
    assert.equal(readFileSync(path, 'utf8'), text(1))
  })

  it('are refused when malformed, by the place where they are', () => {
    assert.throws(() => read('short'), ConfigError)
    assert.throws(() => read(undefined, 'short'), /SERVICE_KMS_PREVIOUS_MASTER_KEYS/)
    writeFileSync(path, 'short')
    assert.throws(() => read(), new RegExp(path))
  })
})
