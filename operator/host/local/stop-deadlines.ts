import type { StopDeadlines } from '../../../runtime/postgres/server-process.ts'
import type { Intent } from './intent.ts'

const SHORT_MS = 10_000
const KILL_MS = 10_000

/** What nobody needs any more, or what does not answer anyway, gets less time for its checkpoint. Milliseconds. */
export const stopDeadlines = (intent: Intent, answers: boolean, cleanStopMs: number): StopDeadlines => {
  const short = Math.min(cleanStopMs, SHORT_MS)
  const patient = answers && (intent.wanted !== 'destroyed' || intent.retainedUntil !== undefined)
  return { fastMs: patient ? cleanStopMs : short, immediateMs: short, killMs: KILL_MS }
}
