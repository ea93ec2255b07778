const endings: (() => Promise<void>)[] = []

/** Has something cleared away when the test run ends, the last one first. */
export const atEnd = (clear: () => Promise<void>): void => {
  endings.push(clear)
}

/** For the root hook. */
export const clearAtEnd = async (): Promise<void> => {
  for (const clear of endings.splice(0).reverse()) await clear()
}
