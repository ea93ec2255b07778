import assert from 'node:assert/strict'
import { z } from 'zod'
import { structuralSchema } from './structural.ts'

const text = z.string().max(9).describe('A text')

describe('structuralSchema', () => {
  it('keeps bounds, patterns, enums, defaults and descriptions at every depth', () => {
    const schema = z.object({
      name: z.string().min(1).max(9).regex(/^a/).describe('A name'),
      size: z.int().min(1).describe('A size'),
      mode: z.enum(['x', 'y']).default('x').describe('A mode'),
      major: z.literal(17).optional().describe('A major'),
      inner: z
        .object({ flag: z.boolean().describe('A flag') })
        .optional()
        .describe('An inner'),
      list: z.array(text).max(3).describe('A list'),
    })
    assert.deepEqual(structuralSchema(schema, 'All'), {
      type: 'object',
      description: 'All',
      required: ['name', 'size', 'list'],
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 9, pattern: '^a', description: 'A name' },
        size: { type: 'integer', minimum: 1, description: 'A size' },
        mode: { type: 'string', enum: ['x', 'y'], default: 'x', description: 'A mode' },
        major: { type: 'integer', enum: [17], description: 'A major' },
        inner: {
          type: 'object',
          description: 'An inner',
          required: ['flag'],
          properties: { flag: { type: 'boolean', description: 'A flag' } },
        },
        list: {
          type: 'array',
          maxItems: 3,
          description: 'A list',
          items: { type: 'string', maxLength: 9, description: 'A text' },
        },
      },
    })
  })

  const recursive: z.ZodObject = z.object({
    get children(): z.ZodOptional<z.ZodArray<z.ZodObject>> {
      return z.array(recursive).max(2).describe('Children').optional()
    },
  })
  const refused: readonly (readonly [string, z.ZodObject, RegExp])[] = [
    ['a union', z.object({ a: z.union([text, z.int()]).describe('d') }), /"a".*union/],
    [
      'a nested union',
      z.object({ a: z.object({ b: z.union([text, z.int()]).describe('d') }).describe('d') }),
      /"a\.b"/,
    ],
    ['a reference', z.object({ a: recursive.describe('d') }), /structural/],
    [
      'a schema with an id, which becomes a reference',
      z.object({ a: z.object({ b: text }).meta({ id: 'Structural' }).describe('d') }),
      /structural/,
    ],
    ['a field without a description', z.object({ a: z.boolean() }), /"a".*description/],
    ['a string without a bound', z.object({ a: z.string().describe('d') }), /"a".*maxLength/],
    ['a list without a bound', z.object({ a: z.array(text).describe('d') }), /"a".*maxItems/],
    [
      'strings without a bound in a list',
      z.object({ a: z.array(z.string()).max(1).describe('d') }),
      /"a\[\]".*maxLength/,
    ],
    ['anything', z.object({ a: z.unknown().describe('d') }), /"a"/],
    ['a map', z.object({ a: z.record(text, text).describe('d') }), /"a"/],
    ['an open object', z.looseObject({ a: text }), /root.*additionalProperties/],
  ]
  for (const [what, schema, message] of refused)
    it(`refuses ${what} and names the field`, () => {
      assert.throws(() => structuralSchema(schema, 'All'), { name: 'TypeError', message })
    })
})
