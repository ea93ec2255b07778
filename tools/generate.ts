/** Writes the generated files; with `--check` writes nothing and fails when one differs or is missing. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { GENERATORS, type Generator } from './generators.ts'

/** Which lines of two texts differ first, for people. */
const firstDifference = (old: string, fresh: string): string => {
  const [oldLines, freshLines] = [old.split('\n'), fresh.split('\n')]
  const line = freshLines.findIndex((text, index) => text !== oldLines[index])
  const at = line === -1 ? freshLines.length : line
  return `line ${at + 1}: has ${JSON.stringify(oldLines[at] ?? '')}, should be ${JSON.stringify(freshLines[at] ?? '')}`
}

/**
 * Brings the files below `root` up to date, or with `check` only compares.
 * @returns one line for each file that was stale
 */
export const generate = async (
  generators: readonly Generator[],
  root: string,
  options: { readonly check: boolean },
): Promise<readonly string[]> => {
  const stale: string[] = []
  for (const { path, render } of generators) {
    const fresh = await render()
    const file = join(root, path)
    const old = await readFile(file, 'utf8').catch(() => undefined)
    if (old === fresh) continue
    stale.push(old === undefined ? `${path} is missing` : `${path} differs at ${firstDifference(old, fresh)}`)
    if (options.check) continue
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, fresh)
  }
  return stale
}

if (import.meta.main) {
  const check = process.argv.includes('--check')
  const stale = await generate(GENERATORS, join(import.meta.dirname, '..'), { check })
  for (const line of stale) console.log(check ? `stale: ${line}` : `written: ${line}`)
  if (check && stale.length > 0) {
    console.error('Run make generate and commit the result')
    process.exitCode = 1
  }
}
