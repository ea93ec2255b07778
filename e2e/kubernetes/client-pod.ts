/** A program of a tenant's in the cluster: a pod that finds its database by the Secret that it mounts, and proves the server. */
import { setTimeout as sleep } from 'node:timers/promises'
import { credentialSecrets } from '../../crds/credential-secrets.ts'
import { environmentType } from '../../crds/environment-type.ts'
import type { ResourceKey } from '../../lib/model/resource.ts'
import type { Release } from './release.ts'

const NAME = 'client'
/** libpq's variables, and the Secret's keys for them. */
const VARIABLES = { PGHOST: 'host', PGPORT: 'port', PGDATABASE: 'database', PGUSER: 'user', PGPASSWORD: 'password' }

export interface ClientPod {
  /** Runs statements as the tenant, by the variables of the Secret and with `verify-full`. @returns what psql printed */
  psql(sql: string): Promise<string>
  /** The same by the one `uri` of the mounted Secret. */
  psqlByUri(sql: string): Promise<string>
  /** The same by any URI; the authority of the mounted Secret is trusted. */
  psqlTo(uri: string, sql: string): Promise<string>
  remove(): Promise<void>
}

/** Starts one beside an environment that is ready, under whatever Pod Security is in force there. */
export const startClientPod = async ({ kubectl, world }: Release, key: ResourceKey): Promise<ClientPod> => {
  const environment = await world.store.get(environmentType, key)
  if (environment?.status?.image === undefined) throw new Error(`${key.name} is not ready`)
  const { namespace, name, uid } = environment.metadata
  const secret = credentialSecrets.names({ namespace, name, uid }).app
  const metadata = { name: NAME, namespace }
  const container = {
    name: NAME,
    image: environment.status.image,
    command: ['sleep', '3600'],
    env: [
      ...Object.entries(VARIABLES).map(([variable, key]) => ({
        name: variable,
        valueFrom: { secretKeyRef: { name: secret, key } },
      })),
      { name: 'PGSSLMODE', value: 'verify-full' },
      { name: 'PGSSLROOTCERT', value: '/etc/app/ca.crt' },
    ],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [{ name: 'app', mountPath: '/etc/app', readOnly: true }],
  }
  const pod = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: {
        ...{ runAsNonRoot: true, runAsUser: 999, runAsGroup: 999, fsGroup: 999 },
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [container],
      volumes: [{ name: 'app', secret: { secretName: secret } }],
    },
  }
  await kubectl.must(['apply', '-f', '-'], JSON.stringify(pod))
  const inNamespace = ['--namespace', namespace]
  await kubectl.must([...inNamespace, 'wait', '--for=condition=Ready', `pod/${NAME}`, '--timeout=60s'])
  // A Service leads to a pod within a second or so of its being ready.
  const patiently = async (command: readonly string[]): Promise<string> => {
    for (const until = Date.now() + 15_000; ; ) {
      const { code, stdout, stderr } = await kubectl.run([...inNamespace, 'exec', NAME, '--', ...command])
      if (code === 0) return stdout
      if (!/could not connect|connection to server|Connection refused/i.test(stderr) || Date.now() > until)
        throw new Error(`psql: ${stderr}`)
      await sleep(200)
    }
  }
  return {
    psql: sql => patiently(['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', sql]),
    psqlByUri: sql => patiently(['sh', '-c', `psql "$(cat /etc/app/uri)" -XAtq -c "$1"`, 'sh', sql]),
    psqlTo: (uri, sql) => patiently(['psql', uri, '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', sql]),
    remove: async () => {
      await kubectl.must([...inNamespace, 'delete', 'pod', NAME])
    },
  }
}
