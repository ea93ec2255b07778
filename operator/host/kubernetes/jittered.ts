/** A time about as long, so that many that began together do not go on together. */
export const jittered = (ms: number): number => ms * (0.8 + 0.4 * Math.random())
