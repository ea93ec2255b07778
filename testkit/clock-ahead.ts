/** Loaded before a program (`node --import`): it believes that it is fifty minutes later than it is. Timers go as ever. */
const AHEAD_MS = 50 * 60_000
const RealDate = Date

globalThis.Date = class extends RealDate {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(RealDate.now() + AHEAD_MS)
    else super(...(given as [number]))
  }

  static override now(): number {
    return RealDate.now() + AHEAD_MS
  }
} as DateConstructor
