import { join } from 'node:path'

/** As .mocharc.cjs has it. */
const COMPILE_CACHE = join(import.meta.dirname, '../node_modules/.cache/compile')

/**
 * What every process of ours gets of the tests' own environment, and nothing else of it. What is compiled is kept for all of them and
 * for the tests: half of what a start takes is reading our sources, and what is killed often starts often.
 */
export const programEnvironment = (): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? COMPILE_CACHE,
})
