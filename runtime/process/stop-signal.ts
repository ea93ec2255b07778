/** Resolves with the first signal that asks this process to stop; a second one ends it the hard way. */
export const stopSignal = (): Promise<NodeJS.Signals> =>
  new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve)
  })
