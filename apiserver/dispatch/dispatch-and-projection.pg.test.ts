import { embeddedPlace } from '../../testkit/dispatch-places.ts'
import { describeDispatchAndProjection } from './dispatch-and-projection.contract.ts'

describeDispatchAndProjection('on the embedded store', embeddedPlace)
