import assert from 'node:assert/strict'
import { credentialSecrets } from './credential-secrets.ts'

const owner = { namespace: 'svc-acme', name: 'acme.shop.main', uid: '0b3f0000-1111-4222-8333-444455556666' }

describe('credentialSecrets', () => {
  it('names both after the instance and the uid, so that an id used again has others', () => {
    const { app, ops } = credentialSecrets.names(owner)
    assert.match(app, /^main-[0-9a-f]{10}-1-0b3f0000-app$/)
    assert.equal(ops, app.replace(/-app$/, '-ops'))
    assert.notEqual(credentialSecrets.names({ ...owner, uid: '1b3f0000-1111-4222-8333-444455556666' }).app, app)
    const longest = credentialSecrets.names({ ...owner, name: `acme.shop.${'a'.repeat(64)}` }).app
    assert.ok(longest.length <= 66, longest)
  })

  it('tells programs every form of the connection, whatever is in the password', () => {
    const password = 'p:\\/@%?#& é'
    const told = credentialSecrets.app(owner, { username: 'app', password })
    const host = told['host'] ?? ''
    assert.match(host, /^main-[0-9a-f]{10}-1\.svc-acme\.svc$/)
    const uri = new URL(told['uri'] ?? '')
    assert.equal(decodeURIComponent(uri.password), password)
    assert.equal(`${uri.hostname}:${uri.port}${uri.pathname}`, `${host}:5432/app`)
    const jdbc = new URL((told['jdbc-uri'] ?? '').replace(/^jdbc:/, ''))
    assert.deepEqual(Object.fromEntries(jdbc.searchParams), { user: 'app', password, sslmode: 'require' })
    assert.equal(told['pgpass'], `${host}:5432:app:app:p\\:\\\\/@%?#& é\n`)
    assert.equal(told['password'], password)
  })

  it('has them collected with the Environment', () => {
    const { labels, ownerReferences } = credentialSecrets.metadata(owner)
    assert.equal(labels[credentialSecrets.uidLabel], owner.uid)
    assert.deepEqual(ownerReferences, [
      { apiVersion: 'svc.internal/v1alpha1', kind: 'Environment', name: 'acme.shop.main', uid: owner.uid },
    ])
  })
})
