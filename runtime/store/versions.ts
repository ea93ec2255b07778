/** Resource versions: numbers that rise in the order of a store's writes. One that is no number is never judged. */

const NUMBER = /^\d+$/

/** Whether version a is older than b. */
export const isOlder = (a: string, b: string): boolean => NUMBER.test(a) && NUMBER.test(b) && BigInt(a) < BigInt(b)
