/** The code blocks of our documents, to run them as they are printed. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const CHECKOUT = join(import.meta.dirname, '..')

/** Those of a document below a heading of the second level, in order. */
export const blocksBelow = (document: string, heading: string): readonly string[] => {
  const text = readFileSync(join(CHECKOUT, document), 'utf8')
  const section = text.split(/^## /m).find(part => part.startsWith(`${heading}\n`))
  assert.ok(section, `${document} has no "${heading}"`)
  return [...section.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(match => match[1]!)
}
