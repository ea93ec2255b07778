import { createHash } from 'node:crypto'

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  )
}

/** SHA-256 over a parsed body and query, whatever the order of their keys: equal for equal requests. */
export const contentHashOf = (body: unknown, query: unknown): Buffer =>
  createHash('sha256')
    .update(JSON.stringify([sorted(body), sorted(query)]))
    .digest()
