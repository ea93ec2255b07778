/**
 * `node tools/sized-tests.ts`: the test files that do more with FULL=1, one a line: they, or what they are made of, import
 * testkit/full.ts. What the others do, `make test` has done in full.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const SIZES = 'testkit/full.ts'
const IMPORT = /(?:from|import)\s*\(?'(\.[^']+\.ts)'/g

const known = new Map<string, boolean>()
/** Whether a file imports the sizes, by however many files between. */
const reaches = (file: string): boolean => {
  const found = known.get(file)
  if (found !== undefined) return found
  known.set(file, false) // whoever imports each other in a circle
  const imported = [...readFileSync(join(ROOT, file), 'utf8').matchAll(IMPORT)]
    .map(([, path = '']) => join(dirname(file), path))
    // Some stand in texts that tests write.
    .filter(path => existsSync(join(ROOT, path)))
  const does = imported.some(each => each === SIZES || reaches(each))
  known.set(file, does)
  return does
}

/** Paths from the root, sorted. */
export const sizedTests = (): readonly string[] =>
  globSync('**/*.test.ts', { cwd: ROOT, exclude: name => name === 'node_modules' })
    .filter(reaches)
    .sort()

if (import.meta.main) console.log(sizedTests().join('\n'))
