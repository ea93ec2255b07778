/**
 * The authority of certificates grows old: its successor, the servers' certificates and what clients are told, carried through on a
 * real API server and a real Postgres while clients sign in all the time. The operator's clock is ours; TLS has the machine's.
 */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import pg from 'pg'
import { AUTHORITIES_KEY, credentialSecrets } from '../../../crds/credential-secrets.ts'
import { ANNOTATIONS, API_VERSION, LABELS } from '../../../crds/metadata.ts'
import { KubernetesCredentials } from '../../../runtime/kubernetes/kubernetes-credentials.ts'
import { silentLog } from '../../../runtime/log/log.ts'
import { atEnd } from '../../../testkit/at-end.ts'
import { startClaimFaker } from '../../../testkit/kubernetes/claim-faker.ts'
import { apiCluster, type TestCluster } from '../../../testkit/kubernetes/cluster.ts'
import { ended, kubectlOn } from '../../../testkit/kubernetes/kubectl.ts'
import { untilHolds } from '../../../testkit/kubernetes/kubernetes-host.ts'
import { needsLoopbackServices } from '../../../testkit/kubernetes/loopback-services.ts'
import { type MountedPostgres, startMountedPostgres } from '../../../testkit/kubernetes/mounted-postgres.ts'
import { PodFaker } from '../../../testkit/kubernetes/pod-faker.ts'
import { TEST_CREDENTIALS, TEST_SPEC, untilState } from '../../../testkit/local-host.ts'
import { testFolder } from '../../../testkit/server-files.ts'
import type { InstanceRef } from '../host.ts'
import { newAuthority } from './authority.ts'
import { dataOf, withoutNulls } from './authority-data.ts'
import { AUTHORITY_SECRET } from './authority-secret.ts'
import { DEFAULT_HOST_SETTINGS } from './host-settings.ts'
import { instanceNames } from './instance-names.ts'
import { type KubernetesHost, openKubernetesHost } from './kubernetes-host.ts'
import { pods, secrets } from './object-types.ts'

const DAY_MS = 86_400_000
/** An authority lives for ten years and is followed in its last one: this one's last year begins 28.5 days ago. */
const MADE_DAYS = 365 - 28.5 - 3650
const pemsOf = (bundle: string): string[] => bundle.match(/-----BEGIN[\s\S]*?-----END CERTIFICATE-----\n/g) ?? []
const isSignedBy = (certificate: X509Certificate, pem: string | undefined): boolean =>
  pem !== undefined && certificate.verify(new X509Certificate(pem).publicKey)

describe('the authority of certificates and its successor', function () {
  this.timeout(240_000)
  let cluster: TestCluster
  let host: KubernetesHost
  let postgres: MountedPostgres
  let credentials: KubernetesCredentials
  let ref: InstanceRef
  let operatorNamespace: string
  /** The operator's clock, in days from now. */
  let day = -89
  const beganMs = Date.now()

  before(async function () {
    cluster = await apiCluster()
    await needsLoopbackServices(this, cluster)
    await cluster.installKinds()
    const namespace = await cluster.namespace('rotation', { [LABELS.organization]: 'acme', [LABELS.project]: 'app' })
    operatorNamespace = await cluster.namespace('rotation-system')
    const podFaker = await PodFaker.start({
      api: await cluster.open('pod-faker'),
      node: namespace,
      namespaces: [namespace],
    })
    const claims = startClaimFaker(await cluster.open('claim-faker'), { node: podFaker.node, namespaces: [namespace] })
    atEnd(async () => {
      await claims.stop()
      await podFaker.stop()
    })
    const old = newAuthority(new Date(beganMs + MADE_DAYS * DAY_MS))
    await cluster.objects.create(secrets, {
      ...{ apiVersion: 'v1', kind: 'Secret', type: 'Opaque' },
      metadata: { namespace: operatorNamespace, name: AUTHORITY_SECRET },
      data: withoutNulls(dataOf(old)),
    })
    const path = { organizationId: 'acme', projectId: 'app', environmentId: 'main' }
    const key = { namespace, name: 'acme.app.main' }
    const { metadata } = await cluster.api.call<{ metadata: { uid: string } }>({
      method: 'POST',
      path: `/apis/${API_VERSION}/namespaces/${namespace}/environments`,
      body: {
        ...{ apiVersion: API_VERSION, kind: 'Environment' },
        metadata: { name: key.name, annotations: { [ANNOTATIONS.paused]: 'true' } },
        spec: { ...path, kind: 'preview' },
      },
    })
    ref = { key, uid: metadata.uid, path }
    host = openKubernetesHost({
      ...{ api: cluster.api, objects: cluster.objects, log: silentLog },
      settings: { ...DEFAULT_HOST_SETTINGS, operatorNamespace, managedBy: namespace },
      now: () => new Date(Date.now() + day * DAY_MS),
    })
    credentials = new KubernetesCredentials(cluster.objects, credentialSecrets, async () => ({
      [AUTHORITIES_KEY]: await host.caCertificate(),
    }))
    await host.watch()
    host.keep()
  })
  after(async () => {
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before they were made
    await host?.stopAll()
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before they were made
    await postgres?.stop()
  })

  const names = () => instanceNames(ref, ref.key.namespace)
  const appSecret = async (): Promise<Record<string, string>> => {
    const name = credentialSecrets.names({ ...ref.key, uid: ref.uid }).app
    const { data } = (await cluster.objects.get(secrets, { namespace: ref.key.namespace, name })) ?? {}
    return Object.fromEntries(
      Object.entries(data ?? {}).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]),
    )
  }
  /** A client that trusts these authorities and nobody else, and insists on the name that it was told. */
  const connect = async (told: Record<string, string>, ca = told[AUTHORITIES_KEY]): Promise<pg.Client> => {
    const { host: servername = '', user, password, database } = told
    const client = new pg.Client({
      ...{ host: postgres.address, port: 5432, user, password, database, connectionTimeoutMillis: 10_000 },
      ssl: { ca, servername },
    })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  const served = async (ca?: string): Promise<X509Certificate> => {
    const client = await connect(await appSecret(), ca)
    const { stream } = (client as unknown as { connection: { stream: TLSSocket } }).connection
    const certificate = stream.getPeerX509Certificate()!
    await client.end()
    return certificate
  }
  /** Days pass for the operator, who is woken by a word on one of his objects. */
  const passTo = async (to: number): Promise<void> => {
    day = to
    const { must } = kubectlOn(cluster.kubeconfig)
    await must(['-n', ref.key.namespace, 'annotate', 'statefulset', names().name, '--overwrite', `test/day=${to}`])
  }
  /** What the operator does whenever it proves a sign-in. */
  const publish = async (): Promise<void> => {
    const owner = { ...ref.key, uid: ref.uid }
    if (!(await credentials.isPublished(owner, TEST_CREDENTIALS))) await credentials.write(owner, TEST_CREDENTIALS)
  }
  const authorities = async (): Promise<string[]> => pemsOf((await appSecret())[AUTHORITIES_KEY] ?? '')
  /** Asked of the server itself: which files it has read. */
  const hasRead = async (): Promise<boolean> => {
    const { data } = (await cluster.objects.get(secrets, { namespace: ref.key.namespace, name: names().files })) ?? {}
    const client = await connect(await appSecret())
    const { rows } = await client.query<{ files: string }>(`select current_setting('svc.files') as files`)
    await client.end()
    return Buffer.from(data?.['postgresql.conf'] ?? '', 'base64')
      .toString()
      .includes(`'${rows[0]?.files}'`)
  }

  it('serves clients that have the Secret alone, and those that verify by its ca.crt', async function () {
    await host.start(ref, TEST_SPEC)
    // The operator's own certificate has to be good by the machine's clock too.
    await passTo(-29.9)
    postgres = await startMountedPostgres(cluster.objects, names())
    await untilState(host, ref, ['running'], 60_000)
    await host.applyCredentials(ref, TEST_CREDENTIALS)
    await publish()
    const told = await appSecret()
    assert.deepEqual((await authorities()).length, 1)
    assert.ok(isSignedBy(await served(), (await authorities())[0]))

    const psql = (uri: string) =>
      ended('psql', ['-XAtc', 'select 1', uri], {
        env: { PGHOSTADDR: postgres.address, HOME: testFolder(), PGPASSFILE: '/dev/null' },
      })
    const file = join(testFolder(), 'ca.crt')
    writeFileSync(file, told[AUTHORITIES_KEY] ?? '')
    const uri = told['uri'] ?? ''
    const verifying = uri.replace('sslmode=require', `sslmode=verify-full`)
    const asked = await Promise.all(
      [uri, `${verifying}&sslrootcert=${file}`, verifying, uri.replace('sslmode=require', 'sslmode=disable')].map(psql),
    ).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      console.log('    psql is not here: what it does with the URI was not tried')
      return undefined
    })
    if (asked === undefined) return
    assert.deepEqual(
      asked.map(({ code }) => code),
      [0, 0, 2, 2],
      JSON.stringify(asked),
    )
    // Why the URI asks for no more by itself.
    assert.match(asked[2]!.stderr, /root certificate file .* does not exist/)
    assert.match(asked[3]!.stderr, /no encryption/)
  })

  it('renews a server’s certificate, and is followed by another, while clients sign in all the time', async () => {
    const failures: string[] = []
    let [signIns, done] = [0, false]
    const startedIn = (await cluster.objects.get(pods, { namespace: ref.key.namespace, name: names().pod }))?.metadata
      ?.uid
    const held = await connect(await appSecret())
    let early = ''
    const client = (async () => {
      while (!done) {
        const told = await appSecret()
        // One reads the Secret each time, one keeps what it read while both authorities were trusted.
        for (const ca of [told[AUTHORITIES_KEY], early || told[AUTHORITIES_KEY]])
          try {
            await (await connect(told, ca)).end()
            signIns++
          } catch (error) {
            failures.push(`day ${day}: ${String(error)}`)
          }
        await held.query('select 1')
        await sleep(20)
      }
    })()

    /** What was done holds for those who come after it. */
    const clientsComeAndGo = async (): Promise<void> => {
      const from = signIns
      await untilHolds(() => signIns >= from + 10 || failures.length > 0)
    }

    await clientsComeAndGo()
    const first = await served()
    await passTo(-28.9)
    await untilHolds(async () => (await served()).serialNumber !== first.serialNumber, 60_000)
    const [old] = await authorities()
    const renewed = await served()
    assert.ok(isSignedBy(renewed, old))
    assert.ok(Date.parse(first.validTo) > Date.now(), 'it was renewed before its end')

    await clientsComeAndGo()

    await passTo(-28)
    await untilHolds(async () => pemsOf((await host.observe(ref)).endpoint?.caCertificate ?? '').length === 2, 60_000)
    await publish()
    await untilHolds(hasRead, 60_000)
    const both = await authorities()
    assert.equal(both[0], old)
    assert.equal((await served()).serialNumber, renewed.serialNumber, 'the successor signs nothing yet')
    await clientsComeAndGo()
    early = both.join('')

    await passTo(-20.9)
    await untilHolds(async () => isSignedBy(await served(early), both[1]), 60_000)
    await publish()
    await clientsComeAndGo()
    await assert.rejects(served(old), 'a client with the old authority alone had a week to read the new one')
    assert.ok(isSignedBy(await served(both[1]), both[1]))

    // Nothing that the old one signed is good any more: its time is over.
    await cluster.objects.merge(
      secrets,
      { namespace: operatorNamespace, name: AUTHORITY_SECRET },
      { data: { 'former.until': btoa(new Date(beganMs - 30 * DAY_MS).toISOString()) } },
    )
    await passTo(-20.8)
    await untilHolds(async () => pemsOf(await host.caCertificate()).length === 1, 60_000)
    await publish()
    await untilHolds(hasRead, 60_000)
    assert.deepEqual(await authorities(), [both[1]])
    await untilState(host, ref, ['running'], 60_000)
    // The operator's own sign-in, by a certificate of the new authority.
    await host.applyCredentials(ref, TEST_CREDENTIALS)
    await clientsComeAndGo()

    done = true
    await client
    assert.deepEqual(failures, [])
    await held.end()
    assert.ok(postgres.running)
    const pod = await cluster.objects.get(pods, { namespace: ref.key.namespace, name: names().pod })
    assert.equal(pod?.metadata?.uid, startedIn, 'nothing was restarted')
  })
})
