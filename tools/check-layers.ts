/**
 * Runs the layer rules of .dependency-cruiser.cjs over the production folders. Fails as well when a source file was not
 * read: with a TypeScript that it does not know, dependency-cruiser reads nothing and reports success.
 */
import { readdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { cruise, type IConfiguration, type ICruiseResult } from 'dependency-cruiser'

/** The rules and options of .dependency-cruiser.cjs. */
export const layerConfiguration = createRequire(import.meta.url)('../.dependency-cruiser.cjs') as IConfiguration

const FOLDERS = ['lib', 'crds', 'runtime', 'operator', 'apiserver', 'box', 'console', 'cli']

export interface LayerReport {
  /** `rule: from -> to`, sorted. */
  readonly violations: readonly string[]
  /** Source files that were not read. */
  readonly unread: readonly string[]
  readonly modules: number
}

const sourceFiles = async (root: string, folder: string): Promise<string[]> => {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter(entry => entry.isFile() && entry.name.endsWith('.ts'))
    .map(entry => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter(path => !path.includes('node_modules/'))
}

/** Reads every module of the production folders below `root` and judges their imports. */
export const checkLayers = async (root: string): Promise<LayerReport> => {
  const files = (await Promise.all(FOLDERS.map(folder => sourceFiles(root, folder)))).flat()
  const { options, ...ruleSet } = layerConfiguration
  const { output } = await cruise(files, { ...options, baseDir: root, validate: true, ruleSet })
  const { modules, summary } = output as ICruiseResult
  const read = new Set(modules.map(({ source }) => source))
  return {
    violations: summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`).sort(),
    unread: files.filter(file => !read.has(file)),
    modules: modules.length,
  }
}

if (import.meta.main) {
  const { violations, unread, modules } = await checkLayers(join(import.meta.dirname, '..'))
  for (const violation of violations) console.error(violation)
  for (const file of unread) console.error(`not read: ${file}`)
  console.log(`${modules} modules read`)
  if (violations.length > 0 || unread.length > 0 || modules === 0) process.exitCode = 1
}
