/** Whether `make verify` runs: all repetitions, all cells. */
export const FULL = process.env['FULL'] === '1'

/** How many repetitions a test makes: few in `make test`, all of them in `make verify`. */
export const sized = (small: number, full: number): number => (FULL ? full : small)
