/** Malformed requests over the whole route table: a good request, with one or two things wrong with it. */
import fc from 'fast-check'
import type { Route } from '../apiserver/contract/route.ts'
import type { RawRequest } from './raw-http.ts'

export interface Malformed {
  readonly route: Route
  readonly request: RawRequest
  /** What was done to it. */
  readonly faults: readonly string[]
}

/** What good requests are made of. */
export interface GoodValues {
  /** undefined: of a call that needs none. */
  readonly token: string | undefined
  readonly params: Readonly<Record<string, string>>
  /** More headers of every request. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  /** Stands wherever a body has a secret. */
  readonly secret?: string
}

/** Fields of bodies that hold secrets. */
const SECRET_FIELD = /password|token|code|secret/

const bodyWith = (example: unknown, secret: string | undefined): unknown => {
  if (secret === undefined || typeof example !== 'object' || example === null) return example
  const fields = Object.entries(example).map(([name, value]) => [
    name,
    SECRET_FIELD.test(name) ? secret : (value as unknown),
  ])
  return Object.fromEntries(fields) as unknown
}

interface Draft {
  method: string
  path: string
  query: string
  headers: [string, string][]
  body: Buffer | undefined
}

/** Changes a draft; answers what it did, or undefined when it does not apply. `pick` chooses where. */
type Fault = (draft: Draft, route: Route, pick: number) => string | undefined

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const goodDraft = (route: Route, { token, params, headers = [], secret }: GoodValues, key: string): Draft => ({
  method: route.method.toUpperCase(),
  path: route.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(params[name] ?? 'nothing')),
  query: route.organization === 'query' ? `organization_id=${params['org'] ?? ''}` : '',
  headers: [
    ...(token === undefined ? [] : ([['Authorization', `Bearer ${token}`]] as [string, string][])),
    ...headers.map(([name, value]): [string, string] => [name, value]),
    ['Idempotency-Key', key],
    ['X-Service-Organization-ID', params['org'] ?? ''],
    ...(route.method === 'get' ? [] : ([['Content-Type', 'application/json']] as [string, string][])),
  ],
  body: route.examples.request === undefined ? undefined : json(bodyWith(route.examples.request, secret)),
})

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

const inPath: Fault[] = badSegments.map(segment => (draft, _route, pick) => {
  const parts = draft.path.split('/')
  const at = 2 + (pick % (parts.length - 2))
  parts[at] = segment
  draft.path = parts.join('/')
  return `path segment ${at} = ${segment}`
})
const inPathForm: Fault[] = [
  draft => ((draft.path += '/'), 'trailing slash'),
  draft => ((draft.path = draft.path.toUpperCase()), 'upper case path'),
  draft => ((draft.path = `/${draft.path}`), 'double slash'),
  draft => ((draft.path += `/${'x'.repeat(9000)}`), 'long path'),
  draft => ((draft.path = draft.path.replace('/v1/', '/v2/')), 'another version'),
]
const inQuery: Fault[] = badQueries.map(query => draft => {
  draft.query = draft.query === '' ? query : `${draft.query}&${query}`
  return `query ${query.slice(0, 40)}`
})
const inBody: Fault[] = badBodies.map(([what, bytes]) => (draft, route) => {
  if (route.method === 'get') return undefined
  draft.body = bytes
  return `body ${what}`
})
const inField: Fault[] = nasty.flatMap(value => [
  (draft, route, pick) => {
    const example = route.examples.request
    if (typeof example !== 'object' || example === null) return undefined
    const fields = Object.keys(example)
    const field = fields[pick % fields.length] ?? 'name'
    draft.body = json({ ...example, [field]: value })
    return `field ${field} = ${JSON.stringify(value).slice(0, 40)}`
  },
])
const inFieldSet: Fault[] = [
  (draft, route) => {
    if (route.method === 'get') return undefined
    draft.body = json({ ...(route.examples.request as object | undefined), is_operator: true })
    return 'unknown field'
  },
  (draft, route) => {
    const fields = Object.entries((route.examples.request as object | undefined) ?? {})
    if (fields.length === 0) return undefined
    draft.body = json(Object.fromEntries(fields.slice(1)))
    return 'missing field'
  },
  (draft, route) => {
    if (route.body === undefined) return undefined
    draft.body = undefined
    return 'no body'
  },
]
const inHeader: Fault[] = badHeaders.map(([name, values]) => draft => {
  set(draft, name, ...values)
  return `${name}: ${values.map(value => value.slice(0, 30)).join(' | ') || '(none)'}`
})
const inMethod: Fault[] = ['TRACE', 'OPTIONS', 'PROPFIND', 'PATCH', 'PUT', 'POST', 'DELETE', 'GET'].map(
  method => (draft, route) => {
    if (method === route.method.toUpperCase()) return undefined
    draft.method = method
    return `method ${method}`
  },
)

const FAULTS: readonly Fault[] = [
  ...inPath,
  ...inPathForm,
  ...inQuery,
  ...inBody,
  ...inField,
  ...inFieldSet,
  ...inHeader,
  ...inMethod,
]

/** A malformed request of any of these routes. */
export const malformedRequest = (routes: readonly Route[], good: GoodValues): fc.Arbitrary<Malformed> =>
  fc
    .tuple(
      fc.constantFrom(...routes),
      fc.array(fc.tuple(fc.constantFrom(...FAULTS), fc.nat(1000)), { minLength: 1, maxLength: 2 }),
      fc.uuid(),
    )
    .map(([route, faults, key]) => {
      const draft = goodDraft(route, good, key)
      const done = faults.map(([fault, pick]) => fault(draft, route, pick)).filter(what => what !== undefined)
      const { method, path, query, headers, body } = draft
      const target = query === '' ? path : `${path}?${query}`
      return { route, faults: done, request: { method, target, headers, body } }
    })
    .filter(({ faults }) => faults.length > 0)
