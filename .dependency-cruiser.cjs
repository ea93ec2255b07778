/**
 * Who may import whom (ARCHITECTURE.md tells it in sentences). `tools/check-layers.ts` runs these over the production
 * folders and asserts that every module was read; its test plants a violation of each rule.
 * Type-only imports count, except where a rule says otherwise.
 */

const PRODUCTION = '^(lib|crds|runtime|operator|apiserver|box|console|cli)/'
const TEST_CODE = '(^(testkit|e2e|tools|bench)/|\\.test\\.ts$|\\.contract\\.ts$)'

/** Modules of Node that reach outside the process, or wait. */
const IO = '^(node:)?(fs|net|http|https|http2|tls|dns|dgram|child_process|cluster|worker_threads|timers|readline|repl|inspector|process)(/|$)'

/** Files of operator/environment that act; all the others decide, or are what decisions are made of. */
const ACTING = [
  ...['apply', 'controller', 'drift-metrics', 'new-credentials', 'observe', 'phase-metrics', 'reconciler', 'report'],
  ...['same-ground', 'tear-down'],
]

const npm = names => `(^|/)node_modules/(${names.join('|')})/`

const rule = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to })

/** Production code below a path. */
const below = path => ({ path, pathNot: TEST_CODE })

const LIB_BASE = ['errors', 'model', 'sql', 'schema-snapshot']

module.exports = {
  forbidden: [
    rule(
      'lib-stands-alone',
      'lib is pure: it imports nothing of ours',
      below('^lib/'),
      { path: '^(crds|runtime|operator|apiserver|box|console|cli)/' },
    ),
    rule('lib-does-no-io', 'lib is data in, data out: no I/O of the platform', below('^lib/'), { path: IO, dependencyTypes: ['core'] }),
    rule(
      'lib-uses-no-platform-package',
      'lib knows no HTTP, no Kubernetes, no driver',
      below('^lib/'),
      { path: '(^|/)node_modules/', pathNot: npm(['zod', '@supabase/pg-delta', '@libpg-query/parser', 'yaml']) },
    ),
    rule(
      'lib-words-stand-alone',
      'lib/model and lib/errors are where everything else begins',
      below('^lib/(model|errors)/'),
      { path: '^lib/', pathNot: '^lib/$1/' },
    ),
    rule(
      'lib-engines-are-independent',
      `an engine builds on ${LIB_BASE.join(', ')} and no other engine; merge on diff, plan on lint, exporter and importer on any`,
      below('^lib/(?!(?:errors|model|exporter|importer|schema-merge|migration-plan)/)([^/]+)/'),
      { path: '^lib/', pathNot: ['^lib/$1/', `^lib/(${LIB_BASE.join('|')})/`] },
    ),
    rule(
      'lib-merge-builds-on-diff',
      'of the engines schema-merge may use schema-diff only',
      below('^lib/schema-merge/'),
      { path: '^lib/', pathNot: `^lib/(schema-merge|schema-diff|${LIB_BASE.join('|')})/` },
    ),
    rule(
      'lib-plan-builds-on-lint',
      'of the engines migration-plan may use migration-lint only',
      below('^lib/migration-plan/'),
      { path: '^lib/', pathNot: `^lib/(migration-plan|migration-lint|${LIB_BASE.join('|')})/` },
    ),
    rule(
      'runtime-knows-none-of-our-kinds',
      'runtime is generic machinery: of ours it imports lib only',
      below('^runtime/'),
      { path: '^(crds|operator|apiserver|box|console|cli)/' },
    ),
    rule(
      'crds-build-on-the-model',
      'the contract of the resources imports lib/model only',
      below('^crds/'),
      { path: '^(lib|runtime|operator|apiserver|box|console|cli)/', pathNot: '^lib/model/' },
    ),
    rule(
      'apiserver-not-operator',
      'they share crds, runtime and lib, and never each other',
      below('^apiserver/'),
      { path: '^(operator|console|cli)/' },
    ),
    rule(
      'operator-not-apiserver',
      'the operator knows resources only',
      below('^operator/'),
      { path: '^(apiserver|console|cli)/' },
    ),
    rule('box-is-the-top', 'only box composes both, and nobody imports box', { path: PRODUCTION, pathNot: '^box/' }, { path: '^box/' }),
    rule(
      'contract-is-words-only',
      'the REST contract imports lib/model, lib/errors, zod and its OpenAPI writer',
      below('^apiserver/contract/'),
      {
        path: ['^(lib|crds|runtime|operator|apiserver|box)/', '(^|/)node_modules/'],
        pathNot: ['^lib/(model|errors)/', '^apiserver/contract/', npm(['zod', 'zod-openapi'])],
      },
    ),
    rule(
      'console-knows-the-contract-only',
      'the console talks to the API like anybody else',
      below('^console/'),
      { path: '^(lib|crds|runtime|operator|apiserver|box|cli)/', pathNot: '^apiserver/contract/' },
    ),
    rule(
      'services-know-no-http',
      'commands, store, dispatch, projector and tenant are called by routes and never call back',
      below('^apiserver/(commands|store|dispatch|projector|tenant)/'),
      { path: '^apiserver/(http|routes)/' },
    ),
    rule(
      'settings-know-nobody',
      'what the API server is told has meaning of its own; whoever uses it imports it',
      below('^apiserver/config/'),
      { path: '^apiserver/', pathNot: '^apiserver/config/' },
    ),
    rule(
      'repositories-know-nobody',
      'apiserver/store reaches no other folder of the API server but config',
      below('^apiserver/store/'),
      { path: '^apiserver/', pathNot: '^apiserver/(store|config)/' },
    ),
    rule(
      'decisions-do-no-io',
      'what decides, checks or builds is functions from data to data: at run time they reach no I/O and no runtime',
      {
        path: ['^operator/environment/', '^operator/.+/checks/', '^operator/.+/decide\\.ts$', '^operator/.+/build-[^/]+\\.ts$'],
        pathNot: [TEST_CODE, ...ACTING.map(name => `^operator/environment/${name}\\.ts$`)],
      },
      { path: [IO, '^runtime/', '(^|/)node_modules/'], dependencyTypesNot: ['type-only'] },
    ),
    rule(
      'express-in-http-only',
      'express is a detail of apiserver/http and of the console server',
      { path: PRODUCTION, pathNot: ['^(apiserver/http|console/server)/', TEST_CODE] },
      { path: npm(['express', '@types/express']) },
    ),
    rule(
      'pg-at-the-rim-only',
      'the driver belongs to the folders that talk to a Postgres',
      {
        path: PRODUCTION,
        pathNot: ['^(apiserver/(store|tenant)|runtime/(embedded|postgres)|operator/(host|jobs)|box)/', TEST_CODE],
      },
      { path: npm(['pg', '@types/pg', 'pg-[^/]+']) },
    ),
    rule(
      'kubernetes-client-in-runtime-only',
      'the client takes a second to load; types may be imported anywhere',
      { path: PRODUCTION, pathNot: ['^runtime/kubernetes/', TEST_CODE] },
      { path: npm(['@kubernetes/client-node']), dependencyTypesNot: ['type-only'] },
    ),
    rule(
      'undici-in-runtime-kubernetes-only',
      'everything else speaks HTTP through fetch; pools, deadlines and retries of the API server are one place',
      { path: PRODUCTION, pathNot: ['^runtime/kubernetes/', TEST_CODE] },
      { path: npm(['undici']) },
    ),
    rule(
      'nodemailer-in-mail-only',
      'how letters travel is a detail of apiserver/mail',
      { path: PRODUCTION, pathNot: ['^apiserver/mail/', TEST_CODE] },
      { path: npm(['nodemailer']) },
    ),
    rule(
      'openid-client-in-oidc-only',
      'how identity providers are spoken to is a detail of apiserver/auth/oidc',
      { path: PRODUCTION, pathNot: ['^apiserver/auth/oidc/', TEST_CODE] },
      { path: npm(['openid-client']) },
    ),
    rule('nobody-imports-a-main', 'a main composes and starts; what others need stands elsewhere', {}, { path: '(^|/)main\\.ts$' }),
    rule('no-test-code-in-production', 'production code knows no test', below(PRODUCTION), { path: TEST_CODE }),
    rule(
      'no-environment-module',
      'the environment is read in config/env.ts, through process.env',
      below(PRODUCTION),
      { path: '^(node:)?process$', dependencyTypes: ['core'] },
    ),
    rule(
      'no-development-packages',
      'production code needs nothing that an installation without development packages lacks',
      below(PRODUCTION),
      { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    ),
    rule('everything-resolves', 'an import that leads nowhere', {}, { couldNotResolve: true }),
    rule('no-cycles', 'a cycle is two modules that are one', {}, { circular: true }),
  ],
  options: {
    doNotFollow: { path: '(^|/)node_modules/' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
