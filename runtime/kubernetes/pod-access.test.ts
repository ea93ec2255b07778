import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newTemporaryFolder } from '../../testkit/test-folder.ts'
import { podAccess } from './pod-access.ts'

describe('what a pod has to reach its cluster', () => {
  let account: string
  let home: string
  beforeEach(() => {
    account = newTemporaryFolder()
    home = newTemporaryFolder()
    for (const [name, text] of Object.entries({ 'ca.crt': 'PEM', token: 'first\n', namespace: 'svc-system' }))
      writeFileSync(join(account, name), text)
  })

  const environment = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }

  it('is an address of its environment and the files of its service account', async () => {
    const access = await podAccess({ environment, account, home })
    assert.ok(access !== undefined)
    assert.deepEqual([access.origin, access.prefix, access.namespace], ['https://10.96.0.1:443', '', 'svc-system'])
    assert.deepEqual(await access.signIn(), { tls: { ca: 'PEM' }, headers: { authorization: 'Bearer first' } })
  })

  it('has an address in brackets where that is one of version 6', async () => {
    const access = await podAccess({
      environment: { ...environment, KUBERNETES_SERVICE_HOST: 'fd00::1' },
      account,
      home,
    })
    assert.equal(access?.origin, 'https://[fd00::1]:443')
  })

  it('is read anew when the API server does not take it any more, and kept where it cannot be', async () => {
    const access = await podAccess({ environment, account, home })
    writeFileSync(join(account, 'token'), 'second')
    assert.equal((await access?.signIn())?.headers['authorization'], 'Bearer first')
    assert.equal((await access?.signIn(true))?.headers['authorization'], 'Bearer second')
    rmSync(join(account, 'token'))
    await assert.rejects(async () => access?.signIn(true), /ENOENT/)
    assert.equal((await access?.signIn())?.headers['authorization'], 'Bearer second')
  })

  it('is nothing outside a pod, without a service account, and where there is a kubeconfig', async () => {
    assert.equal(await podAccess({ environment: {}, account, home }), undefined)
    assert.equal(await podAccess({ environment, account: home, home }), undefined)
    assert.equal(await podAccess({ environment: { ...environment, KUBECONFIG: '/a' }, account, home }), undefined)
    mkdirSync(join(home, '.kube'))
    writeFileSync(join(home, '.kube', 'config'), '{}')
    assert.equal(await podAccess({ environment, account, home }), undefined)
  })
})
