/** Skips the test, or the tests of the hook, and prints why. A test that is skipped silently looks like one that passes. */
export const skipBecause = (context: Mocha.Context, why: string): never => {
  console.log(`    skipped: ${why}`)
  return context.skip()
}
