import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { newTemporaryFolder } from '../../testkit/test-folder.ts'
import { clusterAccess } from './cluster-access.ts'
import { packagedKubeconfigAccess } from './packaged-kubeconfig.ts'
import { plainKubeconfigAccess } from './plain-kubeconfig.ts'
import type { ClusterAccess } from './sign-in.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const SERVER = 'https://cluster.example:6443/behind/a/proxy/'

describe('a plain kubeconfig', function () {
  // The client's package takes its time.
  this.timeout(30_000)
  let folder: string
  let path: string
  beforeEach(() => {
    folder = newTemporaryFolder()
    path = join(folder, 'config')
    mkdirSync(join(folder, 'pki'))
    for (const name of ['ca', 'cert', 'key']) writeFileSync(join(folder, 'pki', name), `${name} of a file`)
  })

  const write = (cluster: object, user: object, more: { readonly context?: object; readonly top?: object } = {}) =>
    writeFileSync(
      path,
      stringify({
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'one', preferences: {} },
        clusters: [
          { name: 'other', cluster: { server: 'https://other.example' } },
          { name: 'c', cluster: { server: SERVER, ...cluster } },
        ],
        users: [
          { name: 'other', user: { exec: { command: 'aws' } } },
          { name: 'u', user },
        ],
        contexts: [{ name: 'one', context: { cluster: 'c', user: 'u', ...more.context } }],
        ...more.top,
      }),
    )
  const told = async (access: ClusterAccess): Promise<object> => {
    const { tls, headers } = await access.signIn()
    const texts = Object.entries(tls).map(([name, value]: [string, unknown]) => [
      name,
      Buffer.isBuffer(value) ? String(value) : value,
    ])
    return { ...access, signIn: { tls: Object.fromEntries(texts), headers } }
  }

  const DATA = { 'client-certificate-data': base64('cert'), 'client-key-data': base64('key') }
  const FILES = { 'client-certificate': 'pki/cert', 'client-key': 'pki/key' }
  const PLAIN: readonly (readonly [what: string, ...Parameters<typeof write>])[] = [
    ['with data', { 'certificate-authority-data': base64('ca') }, DATA],
    ['with files', { 'certificate-authority': 'pki/ca' }, FILES],
    [
      'with both',
      { 'certificate-authority': 'pki/ca', 'certificate-authority-data': base64('ca') },
      { ...DATA, ...FILES },
    ],
    ['with a token', { 'certificate-authority-data': base64('ca') }, { token: 'secret' }],
    ['of a server by another name', { 'tls-server-name': 'kubernetes' }, { token: 'secret' }],
    ['of a server that nobody verifies', { 'insecure-skip-tls-verify': true }, { token: 'secret' }],
    ['of a namespace', {}, { token: 'secret' }, { context: { namespace: 'mine' } }],
    ['with extensions', { extensions: [{ name: 'x', extension: {} }] }, { token: 'secret', extensions: [] }],
  ]
  for (const [what, ...parts] of PLAIN)
    it(`${what} says what the client’s package reads in it`, async () => {
      write(...parts)
      const plain = await plainKubeconfigAccess(path)
      assert.ok(plain !== undefined)
      assert.deepEqual(await told(plain), await told(await packagedKubeconfigAccess(path)))
      assert.equal(plain.prefix, '/behind/a/proxy')
    })

  const OTHERS: readonly (readonly [what: string, ...Parameters<typeof write>])[] = [
    ['runs a program', {}, { exec: { command: 'aws' } }],
    ['asks a provider', {}, { 'auth-provider': { name: 'oidc' } }],
    ['has a name and a password', {}, { username: 'u', password: 'p' }],
    ['speaks for somebody else', {}, { token: 'secret', as: 'root' }],
    ['has its token in a file', {}, { tokenFile: 'token' }],
    ['goes through a proxy', { 'proxy-url': 'http://proxy.example' }, { token: 'secret' }],
    ['has no TLS', { server: 'http://cluster.example' }, { token: 'secret' }],
    ['has no such context', {}, {}, { top: { 'current-context': 'two' } }],
    ['has no such user', {}, {}, { top: { users: [] } }],
    ['says what nobody knows yet', { 'new-setting': 1 }, { token: 'secret' }],
  ]
  for (const [what, ...parts] of OTHERS)
    it(`that ${what} is none`, async () => {
      write(...parts)
      assert.equal(await plainKubeconfigAccess(path), undefined)
    })

  it('is read anew when the API server does not take it any more, also where it was replaced', async () => {
    write({}, { token: 'first' })
    const access = await clusterAccess(path)
    write({}, { token: 'second' })
    assert.equal((await access.signIn()).headers['authorization'], 'Bearer first')
    assert.equal((await access.signIn(true)).headers['authorization'], 'Bearer second')
    rmSync(path)
    await assert.rejects(access.signIn(true), /ENOENT/)
    assert.equal((await access.signIn()).headers['authorization'], 'Bearer second')
  })

  it('that lacks a file says which', async () => {
    write({ 'certificate-authority': 'pki/none' }, FILES)
    await assert.rejects(clusterAccess(path), /pki\/none/)
    assert.equal(readFileSync(join(folder, 'pki', 'ca'), 'utf8'), 'ca of a file')
  })
})
