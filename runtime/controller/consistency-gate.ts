/**
 * Keeps whoever reads a cache from acting on one that is older than its own last write. A write's version is noted; until
 * the cache has seen that version, what it says of the object is the past: it is waited for, then asked for again later,
 * and after five seconds the store itself is asked. A write whose answer was lost is asked for at once.
 *
 * Versions of one type are numbers that rise in the order of its writes. One that is no number is never waited for.
 */
import { keyText, type ResourceKey } from '../../lib/model/resource.ts'
import { type BackoffPolicy, backoffCeilingMs } from './backoff.ts'
import { type Clock, sleep, systemClock } from './clock.ts'
import type { GateObserver } from './observers.ts'

/** How often a key is asked for again while its cache is behind. */
const BEHIND_BACKOFF: BackoffPolicy = { baseMs: 25, capMs: 5_000 }
/** A cache that is behind for longer may hang: the store is asked. */
const ASK_AFTER_MS = 5_000
/** Mostly the watch brings a write within these, so that no key has to go back to its queue. */
const SHORT_WAITS_MS = [1, 2, 4, 8, 10]

/** The cache has not seen our last write yet: the key is looked at again after a while. No failure. */
export class NotCaughtUpError extends Error {
  readonly retryAfterMs: number

  constructor(type: string, key: string, retryAfterMs: number) {
    super(`The cache has not seen our last write of ${type} ${key} yet`)
    this.name = 'NotCaughtUpError'
    this.retryAfterMs = retryAfterMs
  }
}

/** `open`: the cache may be believed. `ask`: read the object from the store, and tell by `wasRead` or `forget`. */
export type GateVerdict = 'open' | 'ask' | { readonly retryAfterMs: number }

interface Note {
  /** undefined: a write whose answer was lost, so that nobody knows the version. */
  readonly version: bigint | undefined
  readonly since: number
  looks: number
}

export interface ConsistencyGateOptions {
  readonly clock?: Clock
  readonly observer?: GateObserver | undefined
}

export class ConsistencyGate {
  readonly #clock: Clock
  readonly #observer: GateObserver | undefined
  readonly #notes = new Map<string, Note>()

  constructor({ clock = systemClock, observer }: ConsistencyGateOptions = {}) {
    this.#clock = clock
    this.#observer = observer
  }

  /** A write of ours gave an object this version. `type` names the kind, e.g. `Environment`. */
  wrote(type: string, key: ResourceKey, resourceVersion: string): void {
    const version = numberOf(resourceVersion)
    if (version === undefined) return
    const id = idOf(type, key)
    const before = this.#notes.get(id)
    if (before !== undefined && before.version !== undefined && before.version >= version) return
    this.#note(id, version)
  }

  /** A write of ours was sent and its answer lost: it may have happened. */
  mayHaveWritten(type: string, key: ResourceKey): void {
    this.#note(idOf(type, key), undefined)
  }

  /** The store itself was asked, and answered with this version: a cache that knows less is still behind. */
  wasRead(type: string, key: ResourceKey, resourceVersion: string): void {
    const id = idOf(type, key)
    const before = this.#notes.get(id)
    if (before === undefined) return
    const version = numberOf(resourceVersion)
    if (version === undefined) this.#notes.delete(id)
    // One that was waited for in vain is not waited for again.
    else
      this.#notes.set(id, {
        ...before,
        version,
        since: before.version === undefined ? this.#clock.now() : before.since,
      })
  }

  /** The object is gone, from the store and from the cache. */
  forget(type: string, key: ResourceKey): void {
    this.#notes.delete(idOf(type, key))
  }

  /** May what a cache says of an object be acted on, that has seen everything up to `seenUpTo`? */
  judge(type: string, key: ResourceKey, seenUpTo: string | undefined): GateVerdict {
    const note = this.#notes.get(idOf(type, key))
    if (note === undefined) return 'open'
    if (hasSeen(seenUpTo, note)) {
      this.#notes.delete(idOf(type, key))
      return 'open'
    }
    if (note.version === undefined || this.#clock.now() - note.since >= ASK_AFTER_MS) return 'ask'
    return { retryAfterMs: backoffCeilingMs(BEHIND_BACKOFF, note.looks) }
  }

  /**
   * As `judge`, and waits a moment for a cache that is only just behind; `seenUpTo` is asked again and again.
   * @throws NotCaughtUpError when it is still behind
   */
  async pass(
    type: string,
    key: ResourceKey,
    seenUpTo: () => string | undefined,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<'open' | 'ask'> {
    const first = this.judge(type, key, seenUpTo())
    if (typeof first === 'string') return this.#ended(type, first, first === 'ask' ? 'asked' : undefined)
    for (const waitMs of SHORT_WAITS_MS) {
      await sleep(this.#clock, waitMs, signal)
      const verdict = this.judge(type, key, seenUpTo())
      if (typeof verdict === 'string') return this.#ended(type, verdict, verdict === 'ask' ? 'asked' : 'caught_up')
    }
    const note = this.#notes.get(idOf(type, key))
    if (note !== undefined) note.looks += 1
    this.#observer?.waited(type, 'requeued')
    throw new NotCaughtUpError(type, keyText(key), first.retryAfterMs)
  }

  /** Objects whose cache is waited for. */
  get size(): number {
    return this.#notes.size
  }

  #ended<V extends GateVerdict>(type: string, verdict: V, end: 'caught_up' | 'asked' | undefined): V {
    if (end !== undefined) this.#observer?.waited(type, end)
    return verdict
  }

  #note(id: string, version: bigint | undefined): void {
    this.#notes.set(id, { version, since: this.#clock.now(), looks: 0 })
  }
}

const idOf = (type: string, key: ResourceKey): string => `${type} ${keyText(key)}`

const numberOf = (version: string | undefined): bigint | undefined =>
  version !== undefined && /^\d+$/.test(version) ? BigInt(version) : undefined

const hasSeen = (seenUpTo: string | undefined, { version }: Note): boolean => {
  if (version === undefined || seenUpTo === undefined) return false
  const seen = numberOf(seenUpTo)
  return seen === undefined || seen >= version
}
