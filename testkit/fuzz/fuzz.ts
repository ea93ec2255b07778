/** Sends many requests that the OpenAPI document allows, or nearly, to a server, and says which answers it does not allow. */
import { Worker } from 'node:worker_threads'
import type { World } from './draw-request.ts'

/** What a thread is to ask. */
export interface FuzzOrder {
  readonly url: string
  readonly seed: number
  /** The number of the first request, and how many. */
  readonly first: number
  readonly count: number
  readonly world: World
}

export interface FuzzReport {
  /** What is wrong, with the request that shows it; the first few. */
  readonly findings: readonly string[]
  /** How often each status was answered. */
  readonly statuses: readonly (readonly [status: number, count: number])[]
  /** The operations that did what they are for. */
  readonly succeeded: readonly string[]
}

export interface ToWorker {
  /** The token of a new session. */
  readonly session: string
}
export type FromWorker = { readonly type: 'session' } | { readonly type: 'report'; readonly report: FuzzReport }

/** Runs to the end. `newSession` begins a session whenever the one in use may have ended; nothing is asked until it has. */
export const fuzz = (order: FuzzOrder, newSession: () => Promise<string>): Promise<FuzzReport> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./fuzz-worker.ts', import.meta.url), { workerData: order })
    worker.once('error', reject)
    worker.once('exit', code => reject(new Error(`The fuzzer ended without a report: ${code}`)))
    worker.on('message', (word: FromWorker) => {
      if (word.type === 'report') resolve(word.report)
      else newSession().then(session => worker.postMessage({ session } satisfies ToWorker), reject)
    })
  })
