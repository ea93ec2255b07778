import { embeddedPlace } from '../../testkit/dispatch-places.ts'
import { describeReplicas } from './replicas.contract.ts'

describeReplicas('on the embedded store', embeddedPlace)
