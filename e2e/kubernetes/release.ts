/** The product as an administrator installs it: both charts, by Helm, into a namespace of its own. */
import { join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { KubernetesResourceStore } from '../../runtime/kubernetes/kubernetes-resource-store.ts'
import { atEnd } from '../../testkit/at-end.ts'
import { AuditLog, auditLogOf } from '../../testkit/kubernetes/audit-log.ts'
import { nodeCluster, type TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { kubectlOn, succeeded } from '../../testkit/kubernetes/kubectl.ts'
import { ApiClient } from '../api-client.ts'
import { type ClusterWorld, clusterWorld } from './cluster-world.ts'
import { dropVolumes } from './left-behind.ts'
import { openServiceDoor } from './service-door.ts'
import { Witness } from './witness.ts'

const CHECKOUT = join(import.meta.dirname, '../..')
export const RELEASE_NAMESPACE = 'svc-system'
const RELEASE = 'svc'

export type Kubectl = ReturnType<typeof kubectlOn>

/** An installation, and a world in which scenarios play on it. */
export interface Release {
  readonly cluster: TestCluster
  readonly world: ClusterWorld
  readonly kubectl: Kubectl
  /** Sees all that the run shows. */
  readonly witness: Witness
  /** What was asked of the API server since; undefined where nobody said where that is written. */
  readonly audit: AuditLog | undefined
  /** Installs the charts again with more values, and waits until their pods are the new ones. */
  upgrade(values: readonly string[]): Promise<void>
  /** Goes back to the revision before. */
  rollback(): Promise<void>
  /** Runs Helm on it. @returns what it printed */
  helm(...args: string[]): Promise<string>
}

let installed: Promise<Release> | undefined

/** The one installation of this test process; removed at its end. */
export const installedRelease = (): Promise<Release> => (installed ??= install())

const install = async (): Promise<Release> => {
  const cluster = await nodeCluster()
  const { kubeconfig, objects } = cluster
  const kubectl = kubectlOn(kubeconfig)
  const helm = (...args: string[]): Promise<string> =>
    succeeded('helm', ['--kubeconfig', kubeconfig, '--namespace', RELEASE_NAMESPACE, ...args], { cwd: CHECKOUT })
  const upgrade = async (values: readonly string[]): Promise<void> => {
    await helm('upgrade', '--install', '--create-namespace', '--take-ownership', 'svc-crds', 'charts/svc-crds')
    const given = ['--values', 'e2e/kubernetes/values.yaml', ...values.flatMap(value => ['--set', value])]
    await helm('upgrade', '--install', RELEASE, 'charts/svc-platform', '--wait', '--timeout', '240s', ...given)
  }
  // Whoever looks for a fault wants to find it as it was.
  if (process.env['E2E_KEEP'] !== '1') atEnd(() => uninstall(cluster, kubectl, helm))
  const config = new KubeConfig()
  config.loadFromFile(kubeconfig)
  const auditPath = auditLogOf('node')
  const audit = auditPath === undefined ? undefined : new AuditLog(auditPath)
  const witness = await Witness.start(await cluster.open('svc-witness'), config)
  atEnd(() => witness.stop())
  await upgrade([])
  const handles = { config, objects }
  const door = await openServiceDoor(handles, { namespace: RELEASE_NAMESPACE, name: 'svc-apiserver' })
  atEnd(() => door.close())
  const token = await kubectl.must([
    ...['--namespace', RELEASE_NAMESPACE, 'exec', 'deployment/svc-apiserver', '--container', 'apiserver', '--'],
    ...['node', 'apiserver/new-user.ts', '--operator', 'e2e@example.com'],
  ])
  const bearer = token.trim().split('\n').at(-1) ?? ''
  witness.plant('the token of the API', bearer)
  const world = clusterWorld(handles, {
    api: new ApiClient(`http://127.0.0.1:${door.port}`, bearer),
    store: new KubernetesResourceStore(cluster.api, 'e2e'),
  })
  atEnd(() => world.close())
  return {
    cluster,
    world,
    kubectl,
    witness,
    audit,
    upgrade,
    helm,
    rollback: async () => {
      await helm('rollback', RELEASE, '--wait')
    },
  }
}

/** Everything of it goes: environments first, while somebody is there to end them. */
const uninstall = async ({ objects }: TestCluster, kubectl: Kubectl, helm: Release['helm']): Promise<void> => {
  const projects = ['namespaces', '--selector', 'svc.internal/project']
  await kubectl.run(['label', ...projects, 'svc.internal/protected-'])
  await kubectl.run(['patch', 'environments', '--all', '--all-namespaces', '--type=merge', '--patch', UNPROTECTED])
  await kubectl.run(['delete', 'environments', '--all', '--all-namespaces', '--timeout=120s'])
  await helm('uninstall', RELEASE, '--wait').catch(() => undefined)
  const named = await kubectl.run(['get', ...projects, '--output', 'jsonpath={.items[*].metadata.name}'])
  for (const namespace of named.stdout.split(' ')) await dropVolumes(objects, namespace)
  await kubectl.run(['delete', ...projects, '--wait=false'])
  await kubectl.run(['delete', 'namespace', RELEASE_NAMESPACE, '--timeout=120s'])
}
const UNPROTECTED = '{"spec":{"deletionProtection":false,"deletionPolicy":"Delete"}}'
