import mocha from 'mocha'

/**
 * The spec reporter, closing with the line `N passed, N failed[, N skipped]` that the CI gate reads.
 */
export default class PassedFailedReporter extends mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options)
    runner.once('end', () => {
      const { passes = 0, failures = 0, pending = 0 } = runner.stats ?? {}
      console.log(`\n${passes} passed, ${failures} failed${pending > 0 ? `, ${pending} skipped` : ''}`)
    })
  }
}
