import { clusterPlace } from '../../testkit/dispatch-places.ts'
import { describeDeletions } from './deletions.contract.ts'
import { describeProjector } from './projector.contract.ts'

describeProjector('on a Kubernetes API server', clusterPlace)
describeDeletions('on a Kubernetes API server', clusterPlace)
