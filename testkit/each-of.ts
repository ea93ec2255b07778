/** As many as a server with a few connections answers soon enough on a busy machine. */
const AT_ONCE = 16

/** Runs a step for every item, some at a time. */
export const eachOf = async <T>(items: readonly T[], step: (item: T) => Promise<unknown>): Promise<void> => {
  const left = items.values()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of left) await step(item)
    }),
  )
}
