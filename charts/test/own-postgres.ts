/** A Postgres that is not of the chart, as a company has one: TLS by a private authority, sign-in by password. */

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { makeAuthority, makeServerIdentity } from '../../runtime/tls/certificate.ts'
import type { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'

const NAME = 'db'
const UID = 999

export interface OwnPostgres {
  /** Its name in the cluster. */
  readonly host: string
  /** PEM of the authority that signs its certificate. */
  readonly ca: string
  /** Runs statements as the superuser. @returns what psql printed */
  sql(statements: string): Promise<string>
}

/** Nobody else is let in without TLS. */
const START = `set -eu
initdb --pgdata=/data/pg --username=postgres --auth-local=trust --auth-host=reject --no-instructions --no-sync >/dev/null
echo 'hostssl all all all scram-sha-256' >> /data/pg/pg_hba.conf
exec postgres -D /data/pg -c listen_addresses='*' -c unix_socket_directories=/tmp -c ssl=on \\
  -c ssl_cert_file=/tls/tls.crt -c ssl_key_file=/tls/tls.key`

/** Starts one in a namespace, and waits until it answers. Its data goes with its pod. */
export const startOwnPostgres = async (
  kubectl: ReturnType<typeof kubectlOn>,
  namespace: string,
): Promise<OwnPostgres> => {
  const host = `${NAME}.${namespace}.svc`
  const now = new Date()
  const authority = makeAuthority('a company', 30, now)
  const signer = { certificate: new X509Certificate(authority.certificate), key: createPrivateKey(authority.key) }
  const server = makeServerIdentity(signer, [host], 30, now)
  const metadata = { name: NAME, namespace, labels: { app: NAME } }
  const pod = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 5,
      securityContext: { runAsNonRoot: true, runAsUser: UID, runAsGroup: UID, fsGroup: UID },
      containers: [
        {
          name: NAME,
          image: 'svc-postgres:17',
          command: ['sh', '-c', START],
          readinessProbe: { exec: { command: ['pg_isready', '-h', '/tmp'] }, periodSeconds: 1 },
          volumeMounts: [
            { name: 'data', mountPath: '/data' },
            { name: 'tls', mountPath: '/tls', readOnly: true },
          ],
        },
      ],
      volumes: [
        { name: 'data', emptyDir: {} },
        { name: 'tls', secret: { secretName: NAME, defaultMode: 0o440 } },
      ],
    },
  }
  const secret = {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata },
    stringData: { 'tls.crt': server.certificate, 'tls.key': server.key },
  }
  const service = {
    ...{ apiVersion: 'v1', kind: 'Service', metadata },
    spec: { selector: { app: NAME }, ports: [{ port: 5432 }] },
  }
  await kubectl.must(['apply', '-f', '-'], [secret, service, pod].map(object => stringify(object)).join('---\n'))
  await kubectl.must(['-n', namespace, 'wait', '--for=condition=Ready', `pod/${NAME}`, '--timeout=120s'])
  // A Service leads to a pod within a second or so of its being ready.
  await sleep(1_000)
  return {
    host,
    ca: authority.certificate,
    sql: statements =>
      kubectl.must(
        [
          '-n',
          namespace,
          'exec',
          '-i',
          NAME,
          '--',
          'psql',
          '-XAtq',
          '-v',
          'ON_ERROR_STOP=1',
          '-h',
          '/tmp',
          '-U',
          'postgres',
        ],
        statements,
      ),
  }
}
