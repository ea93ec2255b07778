/** Values that a schema allows, drawn at random: with every optional field or without, at the bounds or between them. */

import type { SeededRandom } from '../seeded-random.ts'
import type { Schema } from './openapi-operations.ts'

/** A value of some field of our own choice, by its name; undefined: drawn by its schema. */
export type Known = (name: string) => unknown

const LETTERS = Array.from('abcdefghijklmnopqrstuvwxyz0123456789 -_.ÄéßЖ中🐘')
const PIECE = /\[((?:\\.|[^\]\\])+)\](?:\{(\d+)(?:,(\d+))?\}|([+*?]))?|([A-Za-z0-9_-])/gy
const TIMES: Readonly<Record<string, readonly [low: number, high: number]>> = {
  '+': [1, 20],
  '*': [0, 20],
  '?': [0, 1],
}

const characters = (members: string): readonly string[] => {
  const plain = members.replaceAll(/\\(?:u([0-9a-f]{4})|x([0-9a-f]{2}))/g, (_all, four?: string, two?: string) =>
    String.fromCodePoint(Number.parseInt(four ?? two ?? '', 16)),
  )
  const found: string[] = []
  for (let at = 0; at < plain.length; at++) {
    const [from, dash, to] = [plain.codePointAt(at) ?? 0, plain[at + 1], plain.codePointAt(at + 2)]
    if (dash === '-' && to !== undefined) {
      for (let code = from; code <= to; code++) found.push(String.fromCodePoint(code))
      at += 2
    } else found.push(String.fromCodePoint(from))
  }
  return found
}

/** A text of a pattern: of classes, repeated so many times, and plain characters. @throws Error for what else patterns can say */
export const textOf = (pattern: string, random: SeededRandom): string => {
  const inner = pattern.replace(/^\^/, '').replace(/\$$/, '')
  let [text, end] = ['', 0]
  for (const match of inner.matchAll(PIECE)) {
    const [all, members, least = '1', most = least, times, plain = ''] = match
    end = match.index + all.length
    const [low, high] = TIMES[times ?? ''] ?? [Number(least), Number(most)]
    if (members === undefined) text += plain
    else {
      const alphabet = characters(members)
      const length = random.chance(0.3) ? random.pick([low, high]) : random.integer(low, high)
      for (let at = 0; at < length; at++) text += random.pick(alphabet)
    }
  }
  if (end !== inner.length) throw new Error(`The fuzzer cannot draw texts of the pattern ${pattern}`)
  return text
}

const drawnText = ({ minLength = 0, maxLength = 40 }: Schema, random: SeededRandom): string => {
  const most = Math.max(minLength, Math.min(maxLength, 2000))
  const length = random.chance(0.2)
    ? random.pick([minLength, most])
    : random.integer(minLength, Math.min(most, minLength + 20))
  return Array.from({ length }, () => random.pick(LETTERS)).join('')
}

const string = (schema: Schema, random: SeededRandom): string => {
  // Of this machine, where nobody listens: what it leads to is called.
  if (schema.format === 'uri') return `https://localhost:1/${textOf('^[a-z0-9]{1,20}$', random)}`
  if (typeof schema.example === 'string' && random.chance(0.6)) return schema.example
  if (schema.pattern !== undefined) return textOf(schema.pattern, random)
  if (schema.format === 'email') return `${textOf('^[a-z0-9]{1,20}$', random)}@example.com`
  return drawnText(schema, random)
}

const object = (schema: Schema, random: SeededRandom, known: Known): Record<string, unknown> => {
  const share = random.pick([0, 0.3, 1])
  const fields: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(schema.properties ?? {}))
    if (schema.required?.includes(name) === true || random.chance(share))
      fields[name] = known(name) ?? valueOf(field, random, known)
  return fields
}

/** A value that fits. `known` says what stands in fields that mean something. */
export const valueOf = (schema: Schema, random: SeededRandom, known: Known): unknown => {
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return random.pick(schema.enum)
  if (schema.anyOf !== undefined) return valueOf(random.pick(schema.anyOf), random, known)
  switch (schema.type) {
    case 'object':
      return object(schema, random, known)
    case 'array': {
      const { minItems = 0, maxItems = 3, items = {} } = schema
      const length = random.integer(minItems, Math.max(minItems, Math.min(maxItems, 4)))
      return Array.from({ length }, () => valueOf(items, random, known))
    }
    case 'string':
      return string(schema, random)
    case 'integer':
    case 'number': {
      const { minimum = -1, maximum = 100_000, example } = schema
      return example !== undefined && random.chance(0.5)
        ? example
        : random.pick([minimum, maximum, random.integer(minimum, maximum)])
    }
    case 'boolean':
      return random.chance(0.5)
    default:
      return null
  }
}
