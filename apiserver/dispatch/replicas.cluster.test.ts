import { clusterPlace } from '../../testkit/dispatch-places.ts'
import { describeReplicas } from './replicas.contract.ts'

describeReplicas('on a Kubernetes API server', clusterPlace)
