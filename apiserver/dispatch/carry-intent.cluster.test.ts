import { clusterPlace } from '../../testkit/dispatch-places.ts'
import { describeCarriedIntents } from './carry-intent.contract.ts'

describeCarriedIntents('on a Kubernetes API server', clusterPlace)
