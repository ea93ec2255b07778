const { join } = require('node:path')

// For this mocha and all that it starts.
process.env['NODE_COMPILE_CACHE'] ??= join(__dirname, 'node_modules/.cache/compile')

module.exports = {
  extension: ['ts'],
  'node-option': ['enable-source-maps', 'disable-warning=ExperimentalWarning'],
  'forbid-only': true,
  // More to do takes longer, beside others that have more to do.
  timeout: process.env['FULL'] === '1' ? 120_000 : 20_000,
  reporter: 'tools/passed-failed-reporter.ts',
  require: ['./testkit/root-hooks.ts'],
}
