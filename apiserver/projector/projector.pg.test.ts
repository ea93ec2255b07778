import { embeddedPlace } from '../../testkit/dispatch-places.ts'
import { describeProjector } from './projector.contract.ts'

describeProjector('on the embedded store', embeddedPlace)
