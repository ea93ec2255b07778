/** The thread that keeps a lease, with connections of its own: whatever blocks the main loop does not lose it. */
import { parentPort, workerData } from 'node:worker_threads'
import { sleep, systemClock } from '../controller/clock.ts'
import { HttpKubernetesApi } from './http-kubernetes-api.ts'
import { LeaseContender, type Standing } from './lease-contender.ts'
import { LeaseTerm, monotonicMs } from './lease-term.ts'
import type { SignIn } from './sign-in.ts'

/** What the thread is started with. */
export interface LeaseWorkerInput {
  readonly origin: string
  readonly prefix: string
  readonly signIn: SignIn
  readonly userAgent: string
  readonly namespace: string
  readonly name: string
  readonly identity: string
  readonly durationSeconds: number
  readonly renewDeadlineMs: number
  readonly retryMs: number
  readonly term: SharedArrayBuffer
}

/** What it tells. */
export type LeaseWorkerMessage =
  | { readonly type: 'elected' }
  | { readonly type: 'renewed'; readonly tookMs: number }
  | { readonly type: 'lost'; readonly to: string }
  | { readonly type: 'following'; readonly holder: string }
  | { readonly type: 'failed'; readonly why: string }
  | { readonly type: 'sign-in'; readonly afresh: boolean }
  | { readonly type: 'stopped' }

/** What it is told. */
export type LeaseWorkerOrder =
  | { readonly type: 'release' }
  | { readonly type: 'sign-in'; readonly signIn: SignIn; readonly afresh: boolean }

/** A credential is asked for as often as the main thread reads it. */
const REREAD_MS = 60_000

const port = parentPort
if (port === null) throw new Error('lease-worker.ts runs in a worker thread only')
const input = workerData as LeaseWorkerInput
const tell = (message: LeaseWorkerMessage): void => port.postMessage(message)

const stopping = new AbortController()
let signIn = input.signIn
let askedAt = monotonicMs()
let renewed: PromiseWithResolvers<SignIn> | undefined

port.on('message', (order: LeaseWorkerOrder) => {
  if (order.type === 'release') stopping.abort()
  else {
    signIn = order.signIn
    if (order.afresh) renewed?.resolve(signIn)
  }
})

const ask = (afresh: boolean): void => {
  askedAt = monotonicMs()
  tell({ type: 'sign-in', afresh })
}

const api = new HttpKubernetesApi({
  access: {
    origin: input.origin,
    prefix: input.prefix,
    namespace: undefined,
    // The main thread reads files and runs plugins; while it is blocked, what it last told is used.
    signIn: async (afresh = false) => {
      if (!afresh) {
        if (monotonicMs() - askedAt >= REREAD_MS) ask(false)
        return signIn
      }
      renewed = Promise.withResolvers()
      ask(true)
      return renewed.promise
    },
  },
  userAgent: input.userAgent,
})

const contender = new LeaseContender({ ...input, api, now: monotonicMs })
const term = new LeaseTerm(input.term, input.renewDeadlineMs)
/** While we lead: how often the lease had changed hands by then. */
let led: number | undefined
let holder = ''

/** false: it is over. */
const take = ({ leading, holder: now, asOf, transitions }: Standing): boolean => {
  if (led !== undefined && (!leading || transitions !== led)) {
    term.ended()
    tell({ type: 'lost', to: leading ? 'another, and given back' : now })
    return false
  }
  if (leading) {
    term.renewed(asOf)
    tell({ type: 'renewed', tookMs: monotonicMs() - asOf })
    if (led === undefined) tell({ type: 'elected' })
    led = transitions
  } else {
    if (now !== holder) tell({ type: 'following', holder: now })
    holder = now
  }
  return true
}

while (!stopping.signal.aborted) {
  let waitMs = input.retryMs * (0.8 + 0.2 * Math.random())
  try {
    if (!take(await contender.contend())) break
    // Who waits looks more often: a lease that is given back should not lie about.
    if (led === undefined) waitMs /= 2
  } catch (error) {
    // A leader that cannot renew is fenced when its term ends. It goes on trying: as long as nobody else took the lease, it still leads.
    tell({ type: 'failed', why: error instanceof Error ? error.message : String(error) })
    waitMs /= 2
  }
  await sleep(systemClock, waitMs, stopping.signal)
}
// First: nothing may be done any more by the time somebody else can lead.
term.ended()
if (stopping.signal.aborted)
  await contender.release().catch((error: unknown) => {
    tell({ type: 'failed', why: error instanceof Error ? error.message : String(error) })
  })
await api.close()
tell({ type: 'stopped' })
port.close()
