import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { checkLayers, type LayerReport, layerConfiguration } from './check-layers.ts'

/** Files of operator/environment that decide without saying so in their name. */
const PURE = ['conditions', 'expiry', 'life-claims', 'next-phase', 'operation', 'recollection']

/** Each rule's plants: a file that imports something and must be found. */
const FORBIDDEN: readonly (readonly [rule: string, from: string, imports: string])[] = [
  ['lib-stands-alone', 'lib/queue/a.ts', '../../crds/ok.ts'],
  ['lib-stands-alone', 'lib/queue/b.ts', '../../runtime/log/ok.ts'],
  ['lib-does-no-io', 'lib/queue/c.ts', 'node:fs/promises'],
  ['lib-does-no-io', 'lib/queue/d.ts', 'node:timers'],
  ['lib-uses-no-platform-package', 'lib/queue/e.ts', 'pino'],
  ['lib-words-stand-alone', 'lib/model/a.ts', '../errors/ok.ts'],
  ['lib-words-stand-alone', 'lib/errors/a.ts', '../sql/ok.ts'],
  ['lib-engines-are-independent', 'lib/queue/f.ts', '../sanitizer/ok.ts'],
  ['lib-engines-are-independent', 'lib/sql/a.ts', '../queue/ok.ts'],
  ['lib-merge-builds-on-diff', 'lib/schema-merge/a.ts', '../queue/ok.ts'],
  ['lib-plan-builds-on-lint', 'lib/migration-plan/a.ts', '../schema-diff/ok.ts'],
  ['runtime-knows-none-of-our-kinds', 'runtime/store/a.ts', '../../crds/ok.ts'],
  ['crds-build-on-the-model', 'crds/a.ts', '../lib/errors/ok.ts'],
  ['crds-build-on-the-model', 'crds/b.ts', '../runtime/log/ok.ts'],
  ['apiserver-not-operator', 'apiserver/commands/a.ts', '../../operator/host/ok.ts'],
  ['operator-not-apiserver', 'operator/environment/a.ts', '../../apiserver/config/ok.ts'],
  ['box-is-the-top', 'operator/environment/b.ts', '../../box/ok.ts'],
  ['contract-is-words-only', 'apiserver/contract/a.ts', '../config/ok.ts'],
  ['contract-is-words-only', 'apiserver/contract/b.ts', '../../lib/sql/ok.ts'],
  ['contract-is-words-only', 'apiserver/contract/c.ts', 'pino'],
  ['console-knows-the-contract-only', 'console/server/a.ts', '../../apiserver/config/ok.ts'],
  ['services-know-no-http', 'apiserver/dispatch/a.ts', '../http/ok.ts'],
  ['services-know-no-http', 'apiserver/commands/b.ts', '../routes/ok.ts'],
  ['settings-know-nobody', 'apiserver/config/a.ts', '../http/ok.ts'],
  ['repositories-know-nobody', 'apiserver/store/a.ts', '../auth/ok.ts'],
  ['decisions-do-no-io', 'operator/environment/decide.ts', '../../runtime/log/ok.ts'],
  ['decisions-do-no-io', 'operator/environment/checks/a.ts', 'node:net'],
  ['decisions-do-no-io', 'operator/environment/decide-life.ts', 'node:fs'],
  ...PURE.map(name => ['decisions-do-no-io', `operator/environment/${name}.ts`, '../../runtime/log/ok.ts'] as const),
  ['decisions-do-no-io', 'operator/host/kubernetes/build-service.ts', 'pg'],
  ['express-in-http-only', 'apiserver/routes/a.ts', 'express'],
  ['pg-at-the-rim-only', 'apiserver/commands/c.ts', 'pg'],
  ['pg-at-the-rim-only', 'operator/config/a.ts', 'pg'],
  ['kubernetes-client-in-runtime-only', 'operator/host/kubernetes/a.ts', '@kubernetes/client-node'],
  ['undici-in-runtime-kubernetes-only', 'runtime/net/u.ts', 'undici'],
  ['nodemailer-in-mail-only', 'apiserver/commands/d.ts', 'nodemailer'],
  ['openid-client-in-oidc-only', 'apiserver/commands/e.ts', 'openid-client'],
  ['nobody-imports-a-main', 'box/a.ts', './main.ts'],
  ['no-test-code-in-production', 'runtime/store/b.ts', '../../testkit/ok.ts'],
  ['no-test-code-in-production', 'runtime/store/c.ts', './thing.test.ts'],
  ['no-test-code-in-production', 'runtime/store/d.ts', './thing.contract.ts'],
  ['no-environment-module', 'runtime/store/e.ts', 'node:process'],
  ['no-development-packages', 'runtime/store/f.ts', 'fast-check'],
  ['everything-resolves', 'runtime/store/g.ts', './nowhere.ts'],
  ['no-cycles', 'runtime/cycle/a.ts', './b.ts'],
]

/** What the rules must let pass, next to what they forbid. */
const ALLOWED: readonly (readonly [from: string, imports: string])[] = [
  ['lib/queue/ok.ts', '../sql/ok.ts'],
  ['lib/queue/ok-crypto.ts', 'node:crypto'],
  ['lib/schema-merge/ok.ts', '../schema-diff/ok.ts'],
  ['lib/migration-plan/ok.ts', '../migration-lint/ok.ts'],
  ['lib/importer/ok.ts', '../exporter/ok.ts'],
  ['crds/ok.ts', '../lib/model/ok.ts'],
  ['crds/ok-zod.ts', 'zod'],
  ['runtime/log/ok.ts', '../../lib/errors/ok.ts'],
  ['runtime/postgres/ok.ts', 'pg'],
  ['apiserver/contract/ok.ts', '../../lib/errors/ok.ts'],
  ['apiserver/contract/ok-zod.ts', 'zod-openapi'],
  ['apiserver/http/ok.ts', 'express'],
  ['apiserver/store/ok.ts', '../config/ok.ts'],
  ['operator/host/ok.ts', 'pg'],
  ['operator/suspend/decide.ts', '../../crds/ok.ts'],
  ['operator/environment/observe.ts', '../../runtime/log/ok.ts'],
  ['operator/environment/expiry.test.ts', '../../runtime/log/ok.ts'],
  ['runtime/kubernetes/ok.ts', '@kubernetes/client-node'],
  ['box/ok.ts', '../operator/host/ok.ts'],
  ['box/ok-too.ts', '../apiserver/config/ok.ts'],
  ['console/server/ok.ts', '../../apiserver/contract/ok.ts'],
  ['runtime/store/ok.test.ts', '../../testkit/ok.ts'],
  ['apiserver/commands/ok.test.ts', 'pg'],
  ['runtime/kubernetes/pool.ts', 'undici'],
]

/** Files that only have to be there. */
const PLAIN = [
  'lib/errors/ok.ts',
  'lib/exporter/ok.ts',
  'lib/migration-lint/ok.ts',
  'lib/model/ok.ts',
  'lib/sanitizer/ok.ts',
  'lib/schema-diff/ok.ts',
  'lib/sql/ok.ts',
  'apiserver/auth/ok.ts',
  'apiserver/config/ok.ts',
  'apiserver/routes/ok.ts',
  'box/main.ts',
  'runtime/store/thing.test.ts',
  'runtime/store/thing.contract.ts',
  'testkit/ok.ts',
]

describe('The layer rules', () => {
  const repository = join(import.meta.dirname, '..')
  let root = ''
  let report: LayerReport

  before(async function () {
    this.timeout(60_000)
    root = await realpath(await mkdtemp(join(tmpdir(), 'layers-')))
    const write = async (path: string, content: string): Promise<void> => {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), content)
    }
    await mkdir(join(root, 'node_modules'))
    for (const name of [
      'express',
      'fast-check',
      'nodemailer',
      'openid-client',
      'pg',
      'pino',
      'undici',
      'zod',
      'zod-openapi',
    ])
      await symlink(join(repository, 'node_modules', name), join(root, 'node_modules', name))
    const client = '@kubernetes/client-node'
    await write(
      `node_modules/${client}/package.json`,
      JSON.stringify({ name: client, version: '2.0.1', main: 'index.js' }),
    )
    await write(`node_modules/${client}/index.js`, '')
    const manifest = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')) as { dependencies: object }
    await write(
      'package.json',
      JSON.stringify({ ...manifest, dependencies: { ...manifest.dependencies, [client]: '2.0.1' } }),
    )
    for (const path of PLAIN) await write(path, 'export const nothing = 1\n')
    for (const [from, imports] of ALLOWED) await write(from, `import '${imports}'\n`)
    for (const [, from, imports] of FORBIDDEN) await write(from, `import '${imports}'\n`)
    await write('runtime/cycle/b.ts', `import type { A } from './a.ts'\nexport type B = A\n`)
    await write(
      'operator/types/decide.ts',
      `import type { nothing } from '../../runtime/log/ok.ts'\nexport type N = typeof nothing\n`,
    )
    await write('operator/types/pod.ts', `import type {} from '@kubernetes/client-node'\n`)
    await write('operator/dynamic/a.ts', `export const load = () => import('../../apiserver/config/ok.ts')\n`)
    report = await checkLayers(root)
  })
  after(() => rm(root, { recursive: true }))

  it('find every planted violation and nothing besides', () => {
    const found = new Set(report.violations.map(violation => violation.replace(/ -> .*/, '')))
    const planted = new Set([
      ...FORBIDDEN.map(([rule, from]) => `${rule}: ${from}`),
      // An import in the middle of a program is one as well.
      'operator-not-apiserver: operator/dynamic/a.ts',
    ])
    assert.deepEqual([...found].sort(), [...planted].sort())
  })

  it('have a plant each', () => {
    const planted = new Set(FORBIDDEN.map(([rule]) => rule))
    for (const { name } of layerConfiguration.forbidden ?? []) assert.ok(planted.has(name ?? ''), name)
  })

  it('read every source file', () => {
    assert.deepEqual(report.unread, [])
    assert.ok(report.modules > FORBIDDEN.length + ALLOWED.length)
  })
})
