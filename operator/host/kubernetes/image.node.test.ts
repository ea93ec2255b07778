import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { V1Container } from '@kubernetes/client-node'
import { type HostScene, hostScene, SLOWEST_MS, untilHolds } from '../../../testkit/kubernetes/kubernetes-host.ts'
import { type Pod, pods } from './object-types.ts'

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
  const run = async (left: string, ...containers: V1Container[]): Promise<string> => {
    const name = `run-${randomUUID().slice(0, 8)}`
    const pod: Pod = {
      metadata: { name, namespace: scene.namespace },
      spec: {
        terminationGracePeriodSeconds: 1,
        automountServiceAccountToken: false,
        restartPolicy: 'Never',
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
  const exitCode = async (pod: string, name: string): Promise<number> => {
    const statusOf = async () =>
      (
        await scene.cluster.objects.get(pods, { namespace: scene.namespace, name: pod })
      )?.status?.containerStatuses?.find(status => status.name === name)?.state?.terminated?.exitCode
    await untilHolds(async () => (await statusOf()) !== undefined)
    return (await statusOf())!
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
})
