/** Both charts on a cluster with a node, put there by Helm, and taken away again with all that came of them. */
import { join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { KubernetesResourceStore } from '../../runtime/kubernetes/kubernetes-resource-store.ts'
import type { TestCluster } from '../../testkit/kubernetes/cluster.ts'
import { kubectlOn, succeeded } from '../../testkit/kubernetes/kubectl.ts'
import { ApiClient } from '../api-client.ts'
import { type ClusterWorld, clusterWorld } from './cluster-world.ts'
import { dropVolumes } from './left-behind.ts'
import { openServiceDoor } from './service-door.ts'

const CHECKOUT = join(import.meta.dirname, '../..')
export const RELEASE_NAMESPACE = 'svc-system'
const RELEASE = 'svc'

export type Kubectl = ReturnType<typeof kubectlOn>

export interface Installation {
  readonly kubectl: Kubectl
  readonly config: KubeConfig
  /** Runs Helm on it. @returns what it printed */
  helm(...args: string[]): Promise<string>
  /**
   * Installs the charts, or installs them again with more values, and waits until their pods are the new ones. `files` are files
   * of values, by their paths in the checkout.
   */
  upgrade(values?: readonly string[], files?: readonly string[]): Promise<void>
  /** Goes back to the revision before. */
  rollback(): Promise<void>
  /** Makes an administrator beside the server and opens a way to the API. @returns a world for scenarios, and the token */
  enter(): Promise<{ readonly world: ClusterWorld; readonly token: string }>
  /** Everything of it goes: environments first, while somebody is there to end them. */
  uninstall(): Promise<void>
}

/** `values`: a file of values, by its path in the checkout. Nothing is done yet. */
export const installationOn = (cluster: TestCluster, values: string): Installation => {
  const { kubeconfig, objects } = cluster
  const kubectl = kubectlOn(kubeconfig)
  const config = new KubeConfig()
  config.loadFromFile(kubeconfig)
  const helm = (...args: string[]): Promise<string> =>
    succeeded('helm', ['--kubeconfig', kubeconfig, '--namespace', RELEASE_NAMESPACE, ...args], { cwd: CHECKOUT })
  return {
    kubectl,
    config,
    helm,
    upgrade: async (more = [], files = []) => {
      await helm('upgrade', '--install', '--create-namespace', '--take-ownership', 'svc-crds', 'charts/svc-crds')
      const given = [
        ...[values, ...files].flatMap(file => ['--values', file]),
        ...more.flatMap(value => ['--set', value]),
      ]
      await helm('upgrade', '--install', RELEASE, 'charts/svc-platform', '--wait', '--timeout', '240s', ...given)
    },
    rollback: async () => {
      await helm('rollback', RELEASE, '--wait')
    },
    enter: async () => {
      const handles = { config, objects }
      const door = await openServiceDoor(handles, { namespace: RELEASE_NAMESPACE, name: 'svc-apiserver' })
      const printed = await kubectl.must([
        ...['--namespace', RELEASE_NAMESPACE, 'exec', 'deployment/svc-apiserver', '--container', 'apiserver', '--'],
        ...['node', 'apiserver/new-user.ts', '--operator', 'e2e@example.com'],
      ])
      const token = printed.trim().split('\n').at(-1) ?? ''
      const world = clusterWorld(handles, {
        api: new ApiClient(`http://127.0.0.1:${door.port}`, token),
        store: new KubernetesResourceStore(cluster.api, 'e2e'),
      })
      const close = async (): Promise<void> => {
        await world.close()
        await door.close()
      }
      return { world: { ...world, close }, token }
    },
    uninstall: async () => {
      const projects = ['namespaces', '--selector', 'svc.internal/project']
      const found = await kubectl.run(['get', 'environments', '--all-namespaces', '--output', EACH])
      for (const [namespace = '', name = ''] of found.stdout.split('\n').map(line => line.split(' ')))
        if (name !== '')
          await kubectl.run(['-n', namespace, 'patch', 'environment', name, '--type=merge', '--patch', UNPROTECTED])
      await kubectl.run(['delete', 'environments', '--all', '--all-namespaces', '--timeout=120s'])
      await helm('uninstall', RELEASE, '--wait').catch(() => undefined)
      const named = await kubectl.run(['get', ...projects, '--output', 'jsonpath={.items[*].metadata.name}'])
      for (const namespace of named.stdout.split(' ')) await dropVolumes(objects, namespace)
      // However it was installed.
      await kubectl.run(['--namespace', RELEASE_NAMESPACE, 'delete', 'deployments', '--all', '--cascade=foreground'])
      // Retained data protects a namespace; an operator that was still there would put the label back.
      await kubectl.run(['label', ...projects, 'svc.internal/protected-'])
      await kubectl.run(['delete', ...projects, '--wait=false'])
      await kubectl.run(['delete', 'namespace', RELEASE_NAMESPACE, '--timeout=120s'])
    },
  }
}

const EACH = 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\\n"}{end}'
const UNPROTECTED = '{"spec":{"deletionProtection":false,"deletionPolicy":"Delete"}}'
