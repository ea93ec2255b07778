/** One measured figure of the benchmark page: what, how much, what was aimed for. */
export interface Figure {
  readonly name: string
  readonly value: string
  readonly aim: string
}

/** The q-quantile (0 to 1) of some durations, by nearest rank. */
export const quantile = (values: readonly number[], q: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const value = sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))]
  if (value === undefined) throw new Error('Cannot take a quantile of nothing')
  return value
}

/** Milliseconds as seconds with two digits. */
export const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`

/** The figures as a Markdown table. */
export const renderFigures = (figures: readonly Figure[]): string =>
  [
    '| figure | measured | aim |',
    '| --- | --- | --- |',
    ...figures.map(figure => `| ${figure.name} | ${figure.value} | ${figure.aim} |`),
  ].join('\n')
