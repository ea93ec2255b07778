import { embeddedPlace } from '../../testkit/dispatch-places.ts'
import { describeDeletions } from './deletions.contract.ts'
import { describeProjector } from './projector.contract.ts'

describeProjector('on the embedded store', embeddedPlace)
describeDeletions('on the embedded store', embeddedPlace)
