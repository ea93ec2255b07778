/** What can be wrong with a request: each fault changes a draft of a good one in one place. */

import type { SeededRandom } from '../seeded-random.ts'
import type { Operation } from './openapi-operations.ts'

/** A request that is being made. */
export interface Draft {
  method: string
  /** Without its query. */
  path: string
  query: string
  headers: [name: string, value: string][]
  body: Buffer | undefined
}

/** Changes a draft; answers what it did, or undefined when it does not apply. */
export type Fault = (draft: Draft, operation: Operation, random: SeededRandom) => string | undefined

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const set = (draft: Draft, name: string, ...values: string[]): void => {
  draft.headers = draft.headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase())
  for (const value of values) draft.headers.push([name, value])
}

const badSegments = [
  '%00',
  '%E0%A4%A',
  '%ff',
  'A',
  'UPPER-case',
  '..%2f..',
  '%2e%2e',
  'a%2Fb',
  'x'.repeat(65),
  '%F0%9F%98%80',
  '-a',
  'a-',
  "a'--",
  '%20',
  '__proto__',
  'undefined',
  '%0d%0aSet-Cookie:a=b',
]
const badQueries = [
  'limit=0',
  'limit=-1',
  'limit=1&limit=2',
  'limit=12345678901234567890',
  'limit=1e2',
  'limit=0x10',
  'limit=',
  'limit=%00',
  'limit=%zz',
  'after=%F0%9F',
  'after=..%2f',
  'after=MTIzLmFi',
  'unknown=1',
  '__proto__=1',
  'constructor=1',
  'limit[]=1',
  'organization_id=a&organization_id=b',
  'organization_id=%00',
  'project_id=NO',
  '&&==&',
  'a'.repeat(9000),
]
const nasty: readonly unknown[] = [
  null,
  0,
  -1,
  1.5,
  12345678901234567890,
  1e400,
  true,
  '',
  'a\u0000b',
  '\ud800',
  'x'.repeat(5000),
  '🐘',
  [],
  {},
  [[]],
  { a: 1 },
  '2026-99-99',
  'infinity',
  'NaN',
]
const badBodies: readonly (readonly [string, Buffer])[] = [
  ['not JSON', Buffer.from('{')],
  ['a number', Buffer.from('1')],
  ['a string', Buffer.from('"x"')],
  ['null', Buffer.from('null')],
  ['an array', Buffer.from('[]')],
  ['40,000 arrays', Buffer.from('['.repeat(40_000))],
  ['a deep object', Buffer.from('{"a":'.repeat(100) + '1' + '}'.repeat(100))],
  ['too many keys', json(Object.fromEntries(Array.from({ length: 2500 }, (_, i) => [`k${i}`, i])))],
  ['over 100 KiB', json({ name: 'x'.repeat(110_000) })],
  ['bad UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ['a byte order mark', Buffer.from('\ufeff{}')],
  ['__proto__', Buffer.from('{"__proto__":{"isOperator":true}}')],
  ['a 20-digit number', Buffer.from('{"ttl_hours":12345678901234567890,"expires_in_days":12345678901234567890}')],
  ['NUL', Buffer.from('{"name":"a\\u0000b","region":"\\u0000","postgres_major":17}')],
  ['a lone surrogate', Buffer.from('{"name":"\\ud800","region":"\\ud800","postgres_major":17}')],
  ['a trailing comma', Buffer.from('{"name":"a",}')],
]
const badHeaders: readonly (readonly [string, readonly string[]])[] = [
  ['Authorization', []],
  ['Authorization', ['']],
  ['Authorization', ['Bearer']],
  ['Authorization', ['Bearer x']],
  ['Authorization', ['Basic dXNlcjpwYXNz']],
  ['Authorization', [`Bearer svc_pat_${'a'.repeat(49)}`]],
  ['Authorization', [`Bearer ${'x'.repeat(2000)}`]],
  ['Authorization', ['Bearer svc_agt_read.exp-never_x', 'Bearer y']],
  ['Idempotency-Key', []],
  ['Idempotency-Key', ['']],
  ['Idempotency-Key', ['a b']],
  ['Idempotency-Key', ['""']],
  ['Idempotency-Key', ['k'.repeat(256)]],
  ['Idempotency-Key', ['k\u00e9y']],
  ['Idempotency-Key', ['one', 'two']],
  ['X-Service-Organization-ID', []],
  ['X-Service-Organization-ID', ['A']],
  ['X-Service-Organization-ID', ['acme', 'other']],
  ['Accept', ['text/xml']],
  ['Accept', ['application/json;q=0']],
  ['Accept', [';;;,,,']],
  ['Content-Type', ['text/plain']],
  ['Content-Type', []],
  ['Content-Type', ['application/json; charset=latin1']],
  ['Content-Type', ['application/x-www-form-urlencoded']],
  ['Content-Type', ['application/json', 'text/plain']],
  ['Content-Encoding', ['gzip']],
  ['X-Request-Id', ['x']],
  ['X-Request-Id', ['a'.repeat(100)]],
  ['X-Request-Id', ['good-id-1', 'good-id-2']],
  ['X-Forwarded-For', ['1.2.3.4, garbage, ::ffff:1']],
  ['Cookie', ['a=b']],
  ['X-Filler', Array.from({ length: 80 }, () => 'x')],
  ['X-Filler', ['x'.repeat(12_000)]],
]

const inPath: Fault[] = badSegments.map(segment => (draft, _operation, random) => {
  const parts = draft.path.split('/')
  const at = random.integer(2, parts.length - 1)
  parts[at] = segment
  draft.path = parts.join('/')
  return `path segment ${at} = ${segment}`
})
const inPathForm: Fault[] = [
  draft => ((draft.path += '/'), 'path with a slash behind'),
  draft => ((draft.path = draft.path.toUpperCase()), 'path in upper case'),
  draft => ((draft.path = `/${draft.path}`), 'path with two slashes'),
  draft => ((draft.path += `/${'x'.repeat(9000)}`), 'path too long'),
  draft => ((draft.path = draft.path.replace('/v1/', '/v2/')), 'path of another version'),
]
const inQuery: Fault[] = badQueries.map(query => draft => {
  draft.query = draft.query === '' ? query : `${draft.query}&${query}`
  return `query ${query.slice(0, 40)}`
})
const inBody: Fault[] = badBodies.map(([what, bytes]) => draft => {
  if (draft.method === 'GET') return undefined
  draft.body = bytes
  return `body ${what}`
})

const fieldsOf = ({ body }: Draft): Record<string, unknown> | undefined => {
  try {
    const parsed: unknown = JSON.parse(body?.toString() ?? '')
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

const inField: Fault[] = nasty.map(value => (draft, operation, random) => {
  const fields = fieldsOf(draft)
  const names = Object.keys(operation.body?.schema.properties ?? {})
  if (fields === undefined || names.length === 0) return undefined
  const name = random.pick(names)
  draft.body = json({ ...fields, [name]: value })
  return `field ${name} = ${JSON.stringify(value).slice(0, 40)}`
})
const inFieldSet: Fault[] = [
  draft => {
    if (draft.method === 'GET') return undefined
    draft.body = json({ ...fieldsOf(draft), is_operator: true })
    return 'unknown field'
  },
  (draft, _operation, random) => {
    const fields = fieldsOf(draft)
    const names = Object.keys(fields ?? {})
    if (fields === undefined || names.length === 0) return undefined
    const { [random.pick(names)]: _gone, ...rest } = fields
    draft.body = json(rest)
    return 'missing field'
  },
  draft => {
    if (draft.body === undefined) return undefined
    draft.body = undefined
    return 'no body'
  },
]
const inHeader: Fault[] = badHeaders.map(([name, values]) => draft => {
  set(draft, name, ...values)
  return `${name}: ${values.map(value => value.slice(0, 30)).join(' | ') || '(none)'}`
})
const inMethod: Fault[] = ['TRACE', 'OPTIONS', 'PROPFIND', 'PATCH', 'PUT', 'POST', 'DELETE', 'GET'].map(
  method => draft => {
    if (method === draft.method) return undefined
    draft.method = method
    return `method ${method}`
  },
)

export const FAULTS: readonly Fault[] = [
  ...inPath,
  ...inPathForm,
  ...inQuery,
  ...inBody,
  ...inField,
  ...inFieldSet,
  ...inHeader,
  ...inMethod,
]
