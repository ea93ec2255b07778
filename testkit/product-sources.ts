/** The source texts that the product is made of, for checks of what none of them may hold. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const PRODUCT = ['lib', 'crds', 'runtime', 'operator', 'apiserver', 'box']

export interface Source {
  /** From the root. */
  readonly file: string
  readonly text: string
}

/** Every TypeScript file of the product that is no test. */
export const productSources = (): readonly Source[] =>
  PRODUCT.flatMap(folder =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map(name => join(folder, name))
      .map(file => ({ file, text: readFileSync(join(ROOT, file), 'utf8') })),
  )
