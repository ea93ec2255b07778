/** Requests out of the document: good ones by its schemas, most with one or two things wrong with them. */
import type { RawRequest } from '../raw-http.ts'
import { SeededRandom } from '../seeded-random.ts'
import { type Draft, FAULTS } from './faults.ts'
import type { Operation, Parameter } from './openapi-operations.ts'
import { type Known, valueOf } from './schema-values.ts'

/** What stands where the document says only the form of it. */
export interface World {
  /** Credentials that are good for something. */
  readonly tokens: readonly string[]
  /** The token of a session, which may change. */
  readonly session: string
  /** What is there, by the names of parameters and fields; any one of several. */
  readonly things: Readonly<Record<string, string | readonly string[]>>
  /** Stands wherever a body has a secret. */
  readonly canary: string
}

export interface FuzzedRequest {
  readonly operation: Operation
  readonly request: RawRequest
  /** What was done to it; none of a good one. */
  readonly faults: readonly string[]
  /** Whether it may reach another operation than its own. */
  readonly isMoved: boolean
}

/** Fields that hold secrets. */
const SECRET_FIELD = /password|token|code|secret/
const GOOD_SHARE = 0.3

const credential = (operation: Operation, world: World, random: SeededRandom): string | undefined => {
  if (!operation.takesCredential) return random.chance(0.1) ? random.pick(world.tokens) : undefined
  // The login is for sessions.
  return random.chance(operation.path.startsWith('/v1/auth/') ? 0.9 : 0.2) ? world.session : random.pick(world.tokens)
}

const draft = (operation: Operation, world: World, random: SeededRandom): Draft => {
  const { things, canary } = world
  const thing: Known = name => {
    if (!Object.hasOwn(things, name) || !random.chance(0.6)) return undefined
    const found = things[name]
    return typeof found === 'object' ? random.pick(found) : found
  }
  const known: Known = name => {
    if (SECRET_FIELD.test(name) && name !== 'user_code') return random.chance(0.7) ? canary : undefined
    return thing(name)
  }
  // No secret stands in a path: what is called `token` there is its id.
  const drawn = ({ name, schema, in: place }: Parameter): string =>
    String((place === 'path' ? thing(name) : known(name)) ?? valueOf(schema, random, known))
  const chosen = operation.parameters.filter(({ required }) => required === true || random.chance(0.5))
  const named = (place: Parameter['in']): readonly Parameter[] => chosen.filter(each => each.in === place)
  const path = named('path').reduce(
    (template, each) => template.replace(`{${each.name}}`, encodeURIComponent(drawn(each))),
    operation.path,
  )
  const token = credential(operation, world, random)
  const body = operation.body && valueOf(operation.body.schema, random, known)
  return {
    method: operation.method,
    path,
    query: named('query')
      .map(each => `${each.name}=${encodeURIComponent(drawn(each))}`)
      .join('&'),
    headers: [
      ['X-Forwarded-For', `10.77.0.${random.below(250)}`],
      ...(token === undefined ? [] : ([['Authorization', `Bearer ${token}`]] as [string, string][])),
      ...named('header').map((each): [string, string] => [each.name, drawn(each)]),
      ...(operation.method === 'GET' ? [] : ([['Content-Type', 'application/json']] as [string, string][])),
    ],
    body: body === undefined ? undefined : Buffer.from(JSON.stringify(body)),
  }
}

/** The n-th request of a seed: the same however many are drawn beside it. */
export const drawRequest = (operations: readonly Operation[], world: World, seed: number, n: number): FuzzedRequest => {
  const random = new SeededRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(n + 1, 0x85ebca6b))
  const operation = random.pick(operations)
  const made = draft(operation, world, random)
  const count = random.chance(GOOD_SHARE) ? 0 : random.integer(1, 2)
  const faults = Array.from({ length: count }, () => random.pick(FAULTS)(made, operation, random)).filter(
    done => done !== undefined,
  )
  const { method, path, query, headers, body } = made
  return {
    operation,
    request: { method, target: query === '' ? path : `${path}?${query}`, headers, body },
    faults,
    isMoved: faults.some(fault => /^(path|method)/.test(fault)),
  }
}
