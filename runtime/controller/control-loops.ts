/** Starts reflectors and controllers in the right order, and stops them in the other. */
import type { Cache } from './cache.ts'
import type { Controller } from './controller.ts'
import type { ReflectorHealth } from './observers.ts'
import type { Reflector } from './reflector.ts'

/** What only has to be begun and ended, whatever it follows. */
type AnyReflector = Pick<Reflector<never>, 'start' | 'stop' | 'health' | 'name'>

export interface ControlLoopsOptions {
  readonly reflectors: readonly AnyReflector[]
  readonly caches: readonly Pick<Cache<never>, 'waitForSync'>[]
  readonly controllers: readonly Controller[]
  /** The workers wait for it; caches fill meanwhile, so that who is elected late goes on at once. */
  readonly elected?: Promise<unknown> | undefined
  /** How long running reconciles may take to end at a stop, in milliseconds. */
  readonly drainMs?: number
}

export interface ControlLoops {
  /** Resolves once every cache is synced; rejects when stopped before. */
  readonly synced: Promise<void>
  /** Resolves once every cache is synced and the workers run; rejects when stopped before. */
  readonly ready: Promise<void>
  readonly health: () => readonly (ReflectorHealth & { readonly name: string })[]
  /** Drains the controllers, then stops the reflectors. Answers whether everything ended in time. */
  readonly stop: () => Promise<boolean>
}

/** Starts the reflectors; starts the controllers once the caches are synced. */
export const startControlLoops = (options: ControlLoopsOptions): ControlLoops => {
  const { reflectors, caches, controllers, elected, drainMs } = options
  const stopping = new AbortController()
  for (const reflector of reflectors) reflector.start()
  const synced = Promise.all(caches.map(cache => cache.waitForSync(stopping.signal))).then(() => undefined)
  const ready = Promise.all([synced, unlessAborted(elected, stopping.signal)]).then(() => {
    for (const controller of controllers) controller.start()
  })
  // Whoever stops before it was ready may never have looked.
  for (const promise of [synced, ready]) promise.catch(() => undefined)
  return {
    synced,
    ready,
    health: () => reflectors.map(reflector => ({ name: reflector.name, ...reflector.health() })),
    stop: async () => {
      stopping.abort(new Error('The control loops were stopped before they were ready'))
      const drained = await Promise.all(controllers.map(controller => controller.stop(drainMs)))
      await Promise.all(reflectors.map(reflector => reflector.stop()))
      return drained.every(Boolean)
    },
  }
}

const unlessAborted = (promise: Promise<unknown> | undefined, signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    Promise.resolve(promise).then(resolve, reject)
  })
