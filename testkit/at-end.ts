const endings: (() => Promise<void>)[] = []

/** Has something cleared away when the test run ends, the last one first. */
export const atEnd = (clear: () => Promise<void>): void => {
  endings.push(clear)
}

/** For the root hook. All is cleared away, whatever fails. @throws what failed first */
export const clearAtEnd = async (): Promise<void> => {
  const failures: unknown[] = []
  for (const clear of endings.splice(0).reverse())
    try {
      await clear()
    } catch (error) {
      failures.push(error)
    }
  if (failures.length > 0) throw failures[0]
}
