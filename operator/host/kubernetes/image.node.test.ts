import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Container } from '@kubernetes/client-node'
import { type HostScene, hostScene, SLOWEST_MS, untilHolds } from '../../../testkit/kubernetes/kubernetes-host.ts'
import { type FullPod, type Pod, pods } from './object-types.ts'

const DATA = '/var/lib/postgresql/data'

describe('the image of Postgres', function () {
  this.timeout(2 * SLOWEST_MS)
  let scene: HostScene
  before(async () => (scene = await hostScene('image')))
  after(() => scene.close())

  const container = (name: string, changes: Partial<V1Container> = {}): V1Container => ({
    name,
    image: scene.settings.image,
    imagePullPolicy: 'IfNotPresent',
    args: ['-c', 'listen_addresses=', '-c', 'unix_socket_directories=/run/postgresql'],
    env: [{ name: 'SVC_NEW_DATA', value: 'allowed' }],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [
      { name: 'data', mountPath: DATA },
      { name: 'run', mountPath: '/run/postgresql' },
      { name: 'tmp', mountPath: '/tmp' },
    ],
    ...changes,
  })
  /** Runs containers on one new volume, after a command has left something on it. */
  const run = (left: string, ...containers: V1Container[]): Promise<string> => runAs('Never', left, ...containers)
  const runAs = async (
    restartPolicy: 'Always' | 'Never',
    left: string,
    ...containers: V1Container[]
  ): Promise<string> => {
    const name = `run-${randomUUID().slice(0, 8)}`
    const pod: FullPod = {
      metadata: { name, namespace: scene.namespace },
      spec: {
        terminationGracePeriodSeconds: 1,
        automountServiceAccountToken: false,
        restartPolicy,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 999,
          runAsGroup: 999,
          fsGroup: 999,
          seccompProfile: { type: 'RuntimeDefault' },
        },
        initContainers: [container('before', { command: ['sh', '-c', left], args: [] })],
        containers,
        volumes: ['data', 'run', 'tmp'].map(volume => ({ name: volume, emptyDir: {} })),
      },
    }
    await scene.cluster.objects.create<Pod>(pods, pod)
    return name
  }
  const statusOf = async (pod: string, name: string) =>
    (await scene.cluster.objects.get(pods, { namespace: scene.namespace, name: pod }))?.status?.containerStatuses?.find(
      status => status.name === name,
    )
  const exitCode = async (pod: string, name: string): Promise<number> => {
    const codeOf = async () => (await statusOf(pod, name))?.state?.terminated?.exitCode
    await untilHolds(async () => (await codeOf()) !== undefined)
    return (await codeOf())!
  }
  const shell = (pod: string, command: string): Promise<string> =>
    scene.kubectl(['exec', '-n', scene.namespace, pod, '-c', 'postgres', '--', 'sh', '-c', command])
  const answers = (pod: string): Promise<void> =>
    untilHolds(() =>
      shell(pod, 'svc-probe ready').then(
        () => true,
        () => false,
      ),
    )

  it('takes what a crash left of its first start for nothing, and begins anew', async () => {
    const left = `mkdir -p ${DATA}/pgdata.new.dead/base ${DATA}/pgdata && echo 17 > ${DATA}/pgdata.new.dead/PG_VERSION`
    const pod = await run(left, container('postgres'))
    await answers(pod)
    assert.match(await shell(pod, `ls -A ${DATA}`), /^\.svc-held-data\n\.svc-lock\npgdata\n$/)
    const psql = `psql -XAtq -U postgres -d app -c`
    const collation = `select datlocprovider::text || ' ' || datlocale from pg_database where datname = 'app'`
    assert.equal((await shell(pod, `${psql} "${collation}"`)).trim(), 'b C.UTF-8')
    assert.equal((await shell(pod, `${psql} "show data_checksums"`)).trim(), 'on')
    assert.equal(
      (await shell(pod, `${psql} "select count(*) from pg_authid where rolpassword is not null"`)).trim(),
      '0',
    )
  })

  it('makes nothing anew without permission, nor where something is, nor where data once was', async () => {
    const missing = await run('true', container('postgres', { env: [] }))
    const foreign = await run(`mkdir ${DATA}/pgdata && touch ${DATA}/pgdata/photo`, container('postgres'))
    const emptied = await run(`touch ${DATA}/.svc-held-data`, container('postgres'))
    for (const pod of [missing, foreign, emptied]) assert.equal(await exitCode(pod, 'postgres'), 66)
  })

  it('lets one server alone use a volume', async () => {
    const second = container('second', { command: ['sh', '-c', 'sleep 5; exec svc-postgres'], args: [] })
    const pod = await run('true', container('postgres'), second)
    await answers(pod)
    assert.equal(await exitCode(pod, 'second'), 75)
    await shell(pod, 'svc-probe ready')
  })

  it('tells probes whether it says anything at all, and writes out what is dirty before a stop', async () => {
    const pod = await run(
      'true',
      container('postgres', { args: ['-c', 'listen_addresses=', '-c', 'max_connections=4'] }),
    )
    await answers(pod)
    await shell(pod, 'svc-probe alive')
    await shell(pod, 'svc-probe checkpoint 5')
    await assert.rejects(shell(pod, 'PGHOST=/nowhere svc-probe alive'))
    await assert.rejects(shell(pod, 'svc-probe nonsense'), /usage/)
  })

  /** Far less patient than environments' own: one answer too few, and kubelet starts the container again. */
  const impatient = (...args: string[]): V1Container =>
    container('postgres', {
      args: ['-c', 'listen_addresses=', '-c', 'unix_socket_directories=/run/postgresql', ...args],
      startupProbe: { exec: { command: ['svc-probe', 'alive'] }, periodSeconds: 1, failureThreshold: 60 },
      livenessProbe: {
        exec: { command: ['svc-probe', 'alive'] },
        periodSeconds: 1,
        timeoutSeconds: 9,
        failureThreshold: 1,
      },
    })
  /** Kubelet has asked several times: as many as it takes to be sure that it would have killed by now. */
  const isSpared = async (pod: string, meanwhile: () => Promise<void>): Promise<void> => {
    await untilHolds(async () => (await statusOf(pod, 'postgres'))?.started === true)
    for (let look = 0; look < 5; look++) {
      await meanwhile()
      await sleep(1_000)
    }
    const { restartCount, state } = (await statusOf(pod, 'postgres'))!
    assert.equal(restartCount, 0)
    assert.ok(state?.running !== undefined)
  }

  it('is alive to probes while every connection is taken', async () => {
    const psql = 'psql --no-psqlrc --username=postgres --dbname=postgres'
    const clients = container('clients', {
      command: ['sh', '-c', `while :; do ${psql} --command='select pg_sleep(3600)' & sleep 0.2; done`],
      args: [],
    })
    const pod = await runAs('Always', 'true', impatient('-c', 'max_connections=4', '-c', 'max_wal_senders=0'), clients)
    const isFull = (): Promise<boolean> =>
      shell(pod, `${psql} --command='select 1' 2>&1; true`).then(
        said => /too many clients/.test(said),
        () => false,
      )
    await untilHolds(isFull)
    await isSpared(pod, async () => {
      assert.ok(await isFull())
      await shell(pod, 'svc-probe alive')
    })
  })

  it('is alive to probes, and not ready, while it recovers for long', async () => {
    // What a crash leaves takes as long as there is of it; here the server waits for a segment that never comes.
    const left = `mkdir -m 0700 ${DATA}/pgdata && cd ${DATA}/pgdata &&
      zstd --decompress --stdout --quiet /usr/share/svc/template.tar.zst | tar --extract --no-same-owner && touch recovery.signal`
    const pod = await runAs('Always', left, impatient('-c', 'restore_command=sleep 3600', '-c', 'hot_standby=off'))
    await isSpared(pod, async () => {
      await shell(pod, 'svc-probe alive')
      await assert.rejects(shell(pod, 'svc-probe ready'))
      assert.match(await shell(pod, 'pg_isready; true'), /rejecting connections/)
    })
  })
})
