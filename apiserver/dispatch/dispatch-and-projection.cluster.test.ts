import { clusterPlace } from '../../testkit/dispatch-places.ts'
import { describeDispatchAndProjection } from './dispatch-and-projection.contract.ts'

describeDispatchAndProjection('on a Kubernetes API server', clusterPlace)
