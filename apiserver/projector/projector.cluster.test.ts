import { clusterPlace } from '../../testkit/dispatch-places.ts'
import { describeProjector } from './projector.contract.ts'

describeProjector('on a Kubernetes API server', clusterPlace)
