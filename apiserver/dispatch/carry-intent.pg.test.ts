import { embeddedPlace } from '../../testkit/dispatch-places.ts'
import { describeCarriedIntents } from './carry-intent.contract.ts'

describeCarriedIntents('on the embedded store', embeddedPlace)
