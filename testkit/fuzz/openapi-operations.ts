/** The published OpenAPI document as a fuzzer reads it: what can be asked, and what may be answered. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** The keywords that requests of our document use. */
export interface Schema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly example?: unknown
}

export interface Parameter {
  readonly in: 'path' | 'query' | 'header'
  readonly name: string
  readonly required?: boolean
  readonly schema: Schema
}

/** One documented answer. */
export interface Answer {
  /** Of an error: what its `code` can be. */
  readonly codes: readonly string[]
  /** Whether a body fits its schema, by media type; none: nothing is answered. */
  readonly bodies: ReadonlyMap<string, ValidateFunction>
}

export interface Operation {
  readonly operationId: string
  readonly method: string
  /** A template: `/v1/organizations/{org}`. */
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly body: { readonly schema: Schema; readonly mediaTypes: readonly string[] } | undefined
  readonly takesCredential: boolean
  readonly answers: ReadonlyMap<number, Answer>
}

interface RawOperation {
  readonly operationId: string
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly responses: Readonly<
    Record<
      string,
      { readonly description: string; readonly content?: Readonly<Record<string, { readonly schema: unknown }>> }
    >
  >
}
interface RawDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>
}

const FILE = join(import.meta.dirname, '../../docs/api/openapi.json')
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

const escaped = (key: string): string => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))

const resolved = (document: unknown, reference: string): Parameter => {
  let found = document
  for (const key of reference.slice(2).split('/')) found = (found as Record<string, unknown>)[key]
  return found as Parameter
}

/** Every operation of the document. Its schemas are compiled: keep what this answers. */
export const readOperations = (): readonly Operation[] => {
  const document = JSON.parse(readFileSync(FILE, 'utf8')) as RawDocument
  const ajv = new Ajv2020({
    strict: false,
    formats: { 'date-time': DATE_TIME, email: true, uri: text => URL.canParse(text) },
  })
  ajv.addSchema(document, 'document')
  /** Nearly all answers are one and the same, a problem: what is alike is compiled once. */
  const compiled = new Map<string, ValidateFunction>()
  const compile = (pointer: string, schema: unknown): ValidateFunction => {
    const text = JSON.stringify(schema)
    const validate = compiled.get(text) ?? ajv.compile({ $ref: `document#${pointer}` })
    compiled.set(text, validate)
    return validate
  }
  const answerAt = (pointer: string, { description, content }: RawOperation['responses'][string]): Answer => {
    const bodyAt = ([type, { schema }]: readonly [string, { readonly schema: unknown }]) =>
      [type, compile(`${pointer}/content/${escaped(type)}/schema`, schema)] as const
    return {
      codes: [...description.matchAll(/`(\w+)`/g)].map(([, code = '']) => code),
      bodies: new Map(Object.entries(content ?? {}).map(bodyAt)),
    }
  }
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]): Operation => {
      const content = Object.entries(raw.requestBody?.content ?? {})
      const at = `/paths/${escaped(path)}/${method}/responses`
      return {
        operationId: raw.operationId,
        method: method.toUpperCase(),
        path,
        parameters: (raw.parameters ?? []).map(each => ('$ref' in each ? resolved(document, each.$ref) : each)),
        body: content[0] && { schema: content[0][1].schema, mediaTypes: content.map(([mediaType]) => mediaType) },
        takesCredential: raw.security.some(each => 'bearer' in each),
        answers: new Map(
          Object.entries(raw.responses).map(([status, answer]) => [
            Number(status),
            answerAt(`${at}/${status}`, answer),
          ]),
        ),
      }
    }),
  )
}
