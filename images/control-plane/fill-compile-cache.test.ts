import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { newTemporaryFolder } from '../../testkit/test-folder.ts'

describe('the compile cache of the image', () => {
  it('holds every module, and knows the commands by their refusing to start without settings', () => {
    const cache = newTemporaryFolder()
    const { status, stdout, stderr } = spawnSync(process.execPath, ['images/control-plane/fill-compile-cache.ts'], {
      cwd: new URL('../..', import.meta.url),
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: cache },
    })
    assert.equal(status, 0, stderr)
    const commands = [
      'apiserver/disable-user',
      'apiserver/hash-password',
      'apiserver/main',
      'apiserver/migrate',
      'apiserver/new-user',
      'apiserver/rotate-keys',
      'apiserver/verify-audit',
    ]
    const named = [...commands, 'operator/main'].map(command => `${command}.ts`)
    assert.equal(stdout, `Filled the compile cache for ${named.join(', ')}\n`)
    assert.ok(readdirSync(cache, { recursive: true }).length > 400)
  }).timeout(120_000)
})
