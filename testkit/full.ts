/** Whether `make verify` runs: all repetitions, all cells. */
export const FULL = process.env['FULL'] === '1'

/** How many repetitions a test makes: few in `make test`, all of them in `make verify`. */
export const sized = (small: number, full: number): number => (FULL ? full : small)

/** Where a test has its other replicas, whose races are told apart by processes alone: in `make verify` each is one. */
export const REPLICAS: 'here' | 'processes' = FULL ? 'processes' : 'here'
