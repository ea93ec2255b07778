import assert from 'node:assert/strict'
import { connect } from 'node:tls'
import { ANNOTATIONS } from '../../../crds/metadata.ts'
import { kubernetesObjects } from '../../../runtime/kubernetes/kubernetes-objects.ts'
import {
  bringUpOn,
  counting,
  type HostScene,
  hostScene,
  processIn,
  queryService,
  SLOWEST_MS,
  serverPids,
  tracesOf,
  untilHolds,
} from '../../../testkit/kubernetes/kubernetes-host.ts'
import { TEST_CREDENTIALS, TEST_SPEC, untilState } from '../../../testkit/local-host.ts'
import type { InstanceRef } from '../host.ts'
import { DEFAULT_HOST_SETTINGS } from './host-settings.ts'
import { instanceNames } from './instance-names.ts'
import type { KubernetesHost } from './kubernetes-host.ts'
import { type FullPod, nodes, type Pod, pods, secrets, services } from './object-types.ts'

const DESTROYING_MS = 60_000

describe('a host on a cluster', function () {
  this.timeout(2 * SLOWEST_MS)
  let scene: HostScene
  let host: KubernetesHost
  before(async () => {
    scene = await hostScene('faults', { graceSeconds: { ...DEFAULT_HOST_SETTINGS.graceSeconds, preview: 8 } })
    host = await scene.open()
  })
  after(async () => {
    await host.stopAll()
    await scene.close()
  })

  const key = (name: string) => ({ namespace: scene.namespace, name })
  const query = async (ref: InstanceRef, sql: string) =>
    queryService(scene, host, (await host.observe(ref)).endpoint!.host, TEST_CREDENTIALS.app, sql)
  const psql = (ref: InstanceRef, sql: string): Promise<string> =>
    scene.kubectl([
      'exec',
      '-n',
      scene.namespace,
      instanceNames(ref).pod,
      '--',
      'psql',
      '-XAtq',
      '-U',
      'postgres',
      '-d',
      'postgres',
      '-c',
      sql,
    ])

  it('makes few calls: to create, to delete, and none when nothing happens', async () => {
    const first = await scene.place()
    await bringUpOn(host, first)
    const api = await scene.cluster.open('svc-operator')
    const { objects, calls } = counting(kubernetesObjects(api, 'svc-operator'))
    await host.stopAll()
    host = await scene.open({ objects })
    try {
      const ref = await scene.place()
      await bringUpOn(host, ref)
      // With the operator's own at most 14: finalizer, two passwords, four of status.
      assert.ok(calls.length <= 7 + 4, calls.join(', '))
      await new Promise(resolve => setTimeout(resolve, 3000))
      calls.length = 0
      await new Promise(resolve => setTimeout(resolve, 5000))
      assert.deepEqual(calls, [])
      await untilHolds(async () => (await host.destroy(ref, 'Delete')).done, DESTROYING_MS)
      // With the operator's own at most 12: two passwords, a record, two of status, the finalizer.
      assert.ok(calls.length <= 6, calls.join(', '))
      assert.deepEqual(await tracesOf(scene, ref), [])
    } finally {
      await host.stopAll()
      host = await scene.open()
    }
  })

  it('calls a stop unclean that Postgres did not survive', async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    for (const pid of await serverPids(scene, ref)) process.kill(pid, 'SIGSTOP')
    await host.stop(ref)
    const stopped = await untilState(host, ref, ['stopped'], SLOWEST_MS)
    assert.equal(stopped.cleanStop, false)
    await host.start(ref, TEST_SPEC)
    await untilState(host, ref, ['running'], SLOWEST_MS)
    await host.stop(ref)
    assert.equal((await untilState(host, ref, ['stopped'], SLOWEST_MS)).cleanStop, true)
  })

  it('writes out what is dirty before the server is told to stop', async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    const { pod } = instanceNames(ref)
    const inPod = ['-n', scene.namespace, pod]
    // Not a word of checkpoints otherwise; our servers refuse ALTER SYSTEM, and read its file all the same.
    const talkative = 'echo log_checkpoints=on >> "$PGDATA/postgresql.auto.conf"'
    await scene.kubectl(['exec', ...inPod, '--', 'sh', '-c', talkative])
    await psql(ref, 'select pg_reload_conf()')
    await untilHolds(async () => (await psql(ref, 'show log_checkpoints')).trim() === 'on')
    await query(ref, 'create table dirty as select generate_series(1, 1000) as n')
    let heard = ''
    const log = scene.kubectl(['logs', ...inPod, '--follow'], undefined, text => (heard += text))
    // A pod that stops before is gone when its log is asked for.
    await untilHolds(() => heard.includes('ready to accept connections'))
    await host.stop(ref)
    assert.equal((await untilState(host, ref, ['stopped'], SLOWEST_MS)).cleanStop, true)
    const lines = (await log).split('\n')
    const first = (words: RegExp): number => lines.findIndex(line => words.test(line))
    const order = [
      first(/checkpoint starting: immediate force wait/),
      first(/checkpoint complete: wrote [1-9]/),
      first(/received fast shutdown request/),
      first(/checkpoint starting: shutdown immediate/),
    ]
    assert.ok(!order.includes(-1), lines.join('\n'))
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
      lines.join('\n'),
    )
  })

  it('knows how a stop ended that it was not there to see', async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    await host.stop(ref)
    await host.stopAll()
    const ended = async () => {
      const pod = await scene.podOf(ref)
      return pod?.status?.containerStatuses?.[0]?.state?.terminated !== undefined
    }
    await untilHolds(ended)
    host = await scene.open()
    assert.equal((await untilState(host, ref, ['stopped'], SLOWEST_MS)).cleanStop, true)
  })

  it('never deletes by force what is on a node that does not answer, and says so', async () => {
    const name = `lost-${scene.namespace}`
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      // Nothing else may land there: nobody would run it.
      spec: { taints: [{ key: 'svc.internal/test', effect: 'NoSchedule' }] },
    }
    await scene.cluster.objects.create(nodes, node)
    const status = (ready: 'True' | 'Unknown') => ({
      status: {
        capacity: { cpu: '4', memory: '4Gi', pods: '10' },
        allocatable: { cpu: '4', memory: '4Gi', pods: '10' },
        conditions: [{ type: 'Ready', status: ready, reason: 'Test', lastHeartbeatTime: new Date().toISOString() }],
      },
    })
    const settings = {
      ...scene.settings,
      placement: {
        ...scene.settings.placement,
        // No node has it, so that the scheduler stays out of it.
        preview: { nodeSelector: { 'svc.internal/test': name }, tolerations: [{ operator: 'Exists' }] },
      },
    }
    const elsewhere = await scene.open({ settings })
    try {
      await scene.cluster.objects.merge(nodes, { namespace: '', name }, status('True'), 'status')
      const ref = await scene.place()
      await elsewhere.start(ref, TEST_SPEC)
      await untilHolds(async () => (await scene.podOf(ref)) !== undefined)
      await bind(scene, instanceNames(ref).pod, name)
      // What its kubelet would have said before it went silent.
      const podStatus = {
        status: {
          phase: 'Running',
          conditions: [{ type: 'Ready', status: 'False' }],
          containerStatuses: [
            {
              name: 'postgres',
              image: 'x',
              imageID: 'x',
              containerID: 'containerd://x',
              ready: true,
              started: true,
              restartCount: 0,
              state: { running: { startedAt: new Date().toISOString() } },
            },
          ],
        },
      }
      await scene.cluster.objects.merge(pods, key(instanceNames(ref).pod), podStatus, 'status')
      await scene.cluster.objects.merge(nodes, { namespace: '', name }, status('Unknown'), 'status')
      await untilHolds(async () => (await elsewhere.observe(ref)).failure?.reason === 'NodeLost')
      const { uid } = (await scene.podOf(ref))!.metadata!
      // Whatever is asked for, and for longer than its grace.
      await elsewhere.start(ref, { ...TEST_SPEC, maxConnections: 20 })
      await elsewhere.stop(ref)
      await new Promise(resolve => setTimeout(resolve, 20_000))
      assert.equal((await scene.podOf(ref))?.metadata?.uid, uid)
      await untilHolds(async () => {
        const seen = await elsewhere.observe(ref)
        return seen.state === 'stopping' && seen.failure?.reason === 'NodeLost'
      })
      assert.equal((await elsewhere.destroy(ref, 'Delete')).done, false)
      assert.equal((await scene.podOf(ref))?.metadata?.uid, uid)
      await scene.kubectl([
        'patch',
        '-n',
        scene.namespace,
        `pod/${instanceNames(ref).pod}`,
        '-p',
        '{"metadata":{"finalizers":null}}',
      ])
      await scene.kubectl([
        'delete',
        '-n',
        scene.namespace,
        `pod/${instanceNames(ref).pod}`,
        '--force',
        '--grace-period=0',
      ])
      await untilHolds(async () => (await elsewhere.destroy(ref, 'Delete')).done, DESTROYING_MS)
    } finally {
      await elsewhere.stopAll()
      await scene.kubectl(['delete', 'node', name])
    }
  })

  it('names what keeps a pod from running', async () => {
    const images = await scene.place()
    await host.start(images, { ...TEST_SPEC, image: 'svc-no-such-image:1' })
    await untilHolds(async () => (await host.observe(images)).failure?.reason === 'ImagePullFailed')
    // A start with what can be had puts it right, although its pod was never made ready.
    await host.start(images, TEST_SPEC)
    await untilState(host, images, ['running'], SLOWEST_MS)

    const room = await scene.place()
    await host.start(room, { ...TEST_SPEC, memoryBytes: 2 ** 45 })
    await untilHolds(async () => (await host.observe(room)).failure?.reason === 'Unschedulable')
    await host.start(room, TEST_SPEC)
    await untilState(host, room, ['running'], SLOWEST_MS)
  })

  it('outlives a query that takes more memory than there is: it alone ends, and what was committed is there', async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    await query(ref, 'create table kept as select 1 as one')
    const { uid } = (await scene.podOf(ref))!.metadata!
    const tooMuch = `select length(string_agg(repeat('x', 1000000), '')) from generate_series(1, 900)`
    await assert.rejects(query(ref, tooMuch), /terminated|closed|ECONNRESET/)
    await untilHolds(async () => {
      const rows = await query(ref, 'select one from kept').catch(() => [])
      return rows[0]?.['one'] === 1
    })
    await untilState(host, ref, ['running'], SLOWEST_MS)
    assert.equal((await scene.podOf(ref))?.metadata?.uid, uid)
  })

  it('tells a server every setting in the right way: what needs a restart at its start, all else in a file', async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    const inFile = `select string_agg(name, ',') from pg_settings where source = 'configuration file' and context = 'postmaster'`
    assert.equal((await psql(ref, inFile)).trim(), '')
    const atStart = `select string_agg(name, ',') from pg_settings
      where source = 'command line' and context not in ('postmaster', 'internal')`
    assert.equal((await psql(ref, atStart)).trim(), '')
    assert.equal((await psql(ref, `select count(*) from pg_file_settings where error is not null`)).trim(), '0')
  })

  it('grows what grows with the disk without a restart, and says that this class of volumes does not', async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    const before = processIn(await scene.podOf(ref))
    const size = async () => (await query(ref, 'show max_wal_size'))[0]?.['max_wal_size']
    assert.equal(await size(), '128MB')
    await host.start(ref, { ...TEST_SPEC, storageBytes: 4 * TEST_SPEC.storageBytes })
    await untilHolds(async () => (await size()) === '512MB', 2 * SLOWEST_MS)
    assert.equal(processIn(await scene.podOf(ref)), before)
    assert.equal((await host.observe(ref)).storageProblem?.reason, 'VolumeNotExpandable')
    const { storage } = await host.observe(ref)
    assert.ok(storage !== undefined && storage.totalBytes > storage.freeBytes && storage.freeBytes > 0)
  })

  it('gives a server a new certificate without a restart', async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    const before = processIn(await scene.podOf(ref))
    const served = await servedCertificate(scene, ref)
    await scene.kubectl(['delete', '-n', scene.namespace, `secret/${instanceNames(ref).files}`])
    await host.start(ref, TEST_SPEC)
    // Kubelet looks at a pod's files each minute or so, and at once when the pod itself is changed.
    await scene.kubectl(['annotate', '-n', scene.namespace, `pod/${instanceNames(ref).pod}`, 'svc.internal/test=look'])
    await untilHolds(async () => (await servedCertificate(scene, ref)) !== served, 2 * SLOWEST_MS)
    assert.deepEqual(await host.signIn(ref, TEST_CREDENTIALS), { result: 'ok' })
    assert.equal(processIn(await scene.podOf(ref)), before)
  })

  it('lets nobody in without encryption, and the superuser only by the operator’s certificate', async () => {
    const ref = await scene.place()
    const { endpoint } = await bringUpOn(host, ref)
    const superuser = { username: 'postgres', password: 'postgres' }
    await assert.rejects(queryService(scene, host, endpoint!.host, superuser, 'select 1', 'postgres'), {
      code: '28000',
    })
    // The server's own certificate is signed by the same authority, and is no client's.
    const secret = await scene.cluster.objects.get(secrets, key(instanceNames(ref).files))
    const pem = (name: string) => Buffer.from(secret!.data![name]!, 'base64').toString()
    const asServer = { cert: pem('tls.crt'), key: pem('tls.key') }
    await assert.rejects(
      queryService(scene, host, endpoint!.host, superuser, 'select 1', 'postgres', { ...asServer }),
      /certificate|28000/,
    )
    await assert.rejects(queryService(scene, host, endpoint!.host, TEST_CREDENTIALS.app, 'select 1', 'app', false), {
      code: '28000',
    })
    assert.deepEqual(await query(ref, 'select ssl from pg_stat_ssl where pid = pg_backend_pid()'), [{ ssl: true }])
  })

  it('shows no secret in any object but Secrets, in any event, in any log of a pod', async () => {
    const ref = await scene.place()
    await bringUpOn(host, ref)
    await assert.rejects(query(ref, `select 1/0 as "planted-canary"`))
    const { items } = await scene.cluster.objects.list(secrets, { namespace: scene.namespace })
    const hidden = items
      .flatMap(({ data }) => data?.['tls.key'] ?? [])
      .map(text => Buffer.from(text, 'base64').toString())
    assert.ok(hidden.length > 0)
    const kinds =
      'statefulsets,pods,services,persistentvolumeclaims,events,configmaps,endpointslices,controllerrevisions'
    const shown = [
      await scene.kubectl(['get', kinds, '-n', scene.namespace, '-o', 'yaml']),
      await scene.kubectl(['logs', '-n', scene.namespace, instanceNames(ref).pod]),
    ].join('\n')
    const words = [
      TEST_CREDENTIALS.app.password,
      TEST_CREDENTIALS.ops.password,
      'planted-canary',
      'PRIVATE KEY',
      'SCRAM-SHA-256$',
    ]
    for (const key of hidden) words.push(key.split('\n')[1]!, Buffer.from(key).toString('base64').slice(0, 40))
    for (const word of words) assert.equal(shown.includes(word), false, word.slice(0, 12))
  })

  it('lives under restricted Pod Security, which is in force', async () => {
    const rooted: FullPod = {
      metadata: key('rooted'),
      spec: { containers: [{ name: 'x', image: scene.settings.image }] },
    }
    await assert.rejects(scene.cluster.objects.create<Pod>(pods, rooted), { reason: 'Forbidden' })
    const ref = await scene.place()
    await bringUpOn(host, ref)
    const pod = instanceNames(ref).pod
    const shell = (command: string) => scene.kubectl(['exec', '-n', scene.namespace, pod, '--', 'sh', '-c', command])
    assert.equal((await shell('id -u; id -g')).trim(), '999\n999')
    await assert.rejects(shell('touch /usr/share/x'), /Read-only file system/)
    assert.equal((await shell('ls /var/run/secrets 2>/dev/null | wc -l')).trim(), '0')
    // The API server's own are in every pod; of the environments beside it a pod is told nothing.
    const neighbours = (await shell('env')).split('\n').filter(line => /_SERVICE_HOST=/.test(line))
    assert.deepEqual(
      neighbours.filter(line => !line.startsWith('KUBERNETES_SERVICE_HOST=')),
      [],
    )
    assert.equal((await shell('grep ^CapEff /proc/1/status')).trim().split(/\s+/)[1], '0000000000000000')
  })

  it('leaves the objects of a predecessor alone until they are gone', async () => {
    const former = await scene.place('again')
    await bringUpOn(host, former)
    const next = { ...former, uid: '00000000-1111-4222-8333-444444444444' }
    await assert.rejects(host.start(next, TEST_SPEC), { name: 'ConditionError', reason: 'NameTaken' })
    assert.deepEqual(await host.observe(next), { state: 'absent', initialized: false, startFailures: 0 })
    assert.deepEqual(await host.destroy(next, 'Delete'), { done: true })
    assert.deepEqual(await host.signIn(former, TEST_CREDENTIALS), { result: 'ok' })
    const service = await scene.cluster.objects.get(services, key(instanceNames(former).name))
    assert.equal(service?.metadata?.annotations?.[ANNOTATIONS.resource], former.key.name)
  })
})

/** The fingerprint of what a server shows. */
const servedCertificate = async (scene: HostScene, ref: InstanceRef): Promise<string> => {
  const names = instanceNames(ref)
  const service = await scene.cluster.objects.get(services, { namespace: scene.namespace, name: names.name })
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: service?.spec?.clusterIP,
      port: 5432,
      servername: names.host,
      rejectUnauthorized: false,
      ALPNProtocols: ['postgresql'],
    })
    socket.once('error', reject)
    socket.once('secureConnect', () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    })
  })
}

/** Puts a pod on a node, as the scheduler does. */
const bind = async (scene: HostScene, pod: string, node: string): Promise<void> => {
  await scene.cluster.api.call({
    method: 'POST',
    path: `/api/v1/namespaces/${scene.namespace}/pods/${pod}/binding`,
    body: {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: pod },
      target: { apiVersion: 'v1', kind: 'Node', name: node },
    },
  })
}
