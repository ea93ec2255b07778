/** How many repetitions a test makes: few in `make test`, all of them in `make verify`. */
export const sized = (small: number, full: number): number => (process.env['FULL'] === '1' ? full : small)
