import type { FakedCluster } from '../../testkit/kubernetes/faked-cluster.ts'
import { type FaultProxy, startFaultProxy } from '../../testkit/kubernetes/fault-proxy.ts'
import { OperatorProcess } from './operator-process.ts'

/** An operator whose way to the API server leads through a proxy. */
export interface ProxiedOperator {
  readonly proxy: FaultProxy
  readonly operator: OperatorProcess
}

/** Makes both; the operator is not launched yet. `identity` is the name by which it holds its lease. */
export const proxiedOperator = async (
  faked: Pick<FakedCluster, 'cluster' | 'namespace'>,
  identity: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<ProxiedOperator> => {
  const proxy = await startFaultProxy(faked.cluster.kubeconfig, { mark: identity })
  const { kubeconfig } = proxy
  const operator = await OperatorProcess.create({ kubeconfig, namespace: faked.namespace, identity, environment })
  return { proxy, operator }
}
