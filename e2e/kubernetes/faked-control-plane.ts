/** The control plane as its real programs, at a cluster whose pods, volumes and servers are played, over a Postgres of the tests. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { atEnd } from '../../testkit/at-end.ts'
import { type ControlPlaneDatabase, controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { type FakedCluster, fakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { kubectlOn } from '../../testkit/kubernetes/kubectl.ts'
import { ApiClient } from '../api-client.ts'
import { Tenant } from '../tenant.ts'
import { ApiServerProcess } from './apiserver-process.ts'
import { OperatorProcess } from './operator-process.ts'

export interface FakedControlPlane {
  readonly faked: FakedCluster
  readonly database: ControlPlaneDatabase
  readonly apiServers: readonly ApiServerProcess[]
  readonly operators: readonly OperatorProcess[]
  /** An administrator's client of one of the API servers. */
  client(of: ApiServerProcess): ApiClient
  /** A new organization with one project. */
  tenant(): Promise<Tenant>
  /** The end of each process' output. */
  outputs(): string
  stop(): Promise<void>
}

/** So many replicas of each program, all of them ready. */
export const startFakedControlPlane = async (hook: Mocha.Context, replicas: number): Promise<FakedControlPlane> => {
  const faked = await fakedCluster(hook)
  const { kubeconfig } = faked.cluster
  const { namespace } = faked
  const database = await controlPlaneDatabase()
  const masterKey = randomBytes(32).toString('base64')
  const names = Array.from({ length: replicas }, (_, index) => `replica-${index + 1}`)
  const apiServers: ApiServerProcess[] = []
  const operators: OperatorProcess[] = []
  for (const identity of names) {
    operators.push(await OperatorProcess.create({ kubeconfig, namespace, identity }))
    apiServers.push(
      await ApiServerProcess.create({ kubeconfig, namespace, masterKey, databaseUrl: database.url('svc_api') }),
    )
  }
  const programs = [...operators, ...apiServers]
  // Also when one of them does not start.
  atEnd(async () => {
    for (const program of programs) await program.stop('SIGKILL')
  })
  for (const program of programs) await program.start()
  const token = await apiServers[0]!.newUser('e2e@example.com')
  const client = ({ baseUrl }: ApiServerProcess): ApiClient => new ApiClient(baseUrl, token)
  const projects: string[] = []
  const outputs = (): string => [...operators, ...apiServers].map(({ output }) => output.slice(-1500)).join('\n--\n')
  const notHere = (): never => assert.fail('Nobody looks for that where pods are played')
  return {
    faked,
    database,
    apiServers,
    operators,
    client,
    tenant: async () => {
      const tenant = await Tenant.create({
        ...{ api: client(apiServers[0]!), store: faked.store },
        ...{ openSql: notHere, isKept: notHere, breakPostgres: notHere },
      })
      projects.push(tenant.key('any').namespace)
      return tenant
    },
    outputs,
    stop: async () => {
      for (const program of programs) await program.stop()
      await database.database.stop()
      const { run } = kubectlOn(kubeconfig)
      for (const project of projects) await run(['delete', 'namespace', project, '--wait=false'])
      await faked.assertSound()
    },
  }
}
