import type { V1Service } from '@kubernetes/client-node'
import type { ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { skipBecause } from '../skip-because.ts'
import type { TestCluster } from './cluster.ts'

const SERVICE: ObjectType<V1Service> = { apiVersion: 'v1', kind: 'Service', plural: 'services' }

/** Skips the hook's tests on a cluster whose Services are not answered by this machine: servers cannot be played there. */
export const needsLoopbackServices = async (hook: Mocha.Context, { objects }: TestCluster): Promise<void> => {
  const { spec } = (await objects.get(SERVICE, { namespace: 'default', name: 'kubernetes' })) ?? {}
  if (spec?.clusterIP?.startsWith('127.') === true) return
  skipBecause(hook, 'needs a cluster whose Services have loopback addresses (--service-cluster-ip-range=127.96.0.0/16)')
}
