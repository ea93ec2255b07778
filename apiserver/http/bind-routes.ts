/**
 * Binds the contract to handlers. One function serves every route, in this order: the credential's form, the body, the
 * credential with the membership (one statement), path, role, key, query, body, handler. What fails first is answered.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Request, type Response, Router } from 'express'
import { z } from 'zod'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { ID_PATTERN } from '../../lib/model/identifiers.ts'
import type { Target } from '../../lib/model/scope.ts'
import { authorize } from '../auth/authorize.ts'
import { POLICY, type PolicyRow, policyRowOf } from '../auth/policy.ts'
import type { Call, OpenCall, Reply } from '../commands/call.ts'
import type { Route } from '../contract/route.ts'
import { ROUTES, type Routes } from '../contract/routes.ts'
import type { HandlersOver, Input } from '../routes/handler.ts'
import type { Admission, Presented } from './admit.ts'
import { limitKey } from './client-address.ts'
import { contentHashOf } from './content-hash.ts'
import { type Exchange, exchangeOf } from './exchange.ts'
import { isForm, readFormBody } from './form-body.ts'
import { parseIdempotencyKey } from './idempotency-key.ts'
import { readJsonBody } from './json-body.ts'
import { checkAccept } from './negotiation.ts'
import { queryOf } from './query.ts'
import { validate } from './validate.ts'

const MAX_BODY_BYTES = 100 * 1024
const NO_PARAMETERS = z.strictObject({})
const NO_BODY = z.strictObject({}).optional()
const NO_CONTENT = Buffer.alloc(0)
const ORGANIZATION_HEADER = 'x-service-organization-id'

/** What the binder needs of the server around it. */
export interface Serving<Context> {
  readonly admission: Admission
  readonly context: Context
  /** Whether there is a built-in login. */
  readonly builtinLogin?: boolean
  /** Sends what a handler answered. */
  readonly reply: (exchange: Exchange, response: ServerResponse, reply: Reply) => void
  /** Sends what was thrown. */
  readonly fail: (exchange: Exchange, response: ServerResponse, error: unknown) => void
}

interface Bound {
  readonly route: Route
  readonly row: PolicyRow
  readonly params: z.ZodType
  readonly query: z.ZodType
  readonly body: z.ZodType
  readonly handle: (input: Input<Route>) => Promise<Reply>
}

const headerText = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === 'string' ? value : undefined
}

const fieldOf = (value: unknown, field: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[field] : undefined

/** The organization that a request names; undefined when it names none that could exist. Validation says so later. */
const organizationOf = (route: Route, request: Request, query: unknown, body: unknown): string | undefined => {
  const place = route.organization
  const value =
    place === 'path'
      ? request.params['org']
      : place === 'query'
        ? fieldOf(query, 'organization_id')
        : place === 'body'
          ? fieldOf(body, 'organization_id')
          : place === 'header'
            ? headerText(request, ORGANIZATION_HEADER)
            : undefined
  return typeof value === 'string' && ID_PATTERN.test(value) ? value : undefined
}

/** The narrowest thing that a request names, by path, query or body. Ids that cannot be one are left to validation. */
const targetOf = (
  organizationId: string | undefined,
  params: Readonly<Record<string, string>>,
  query: unknown,
  body: unknown,
): Target | undefined => {
  if (organizationId === undefined) return undefined
  const idAt = (param: string, field: string): string | undefined => {
    const value = params[param] ?? fieldOf(query, field) ?? fieldOf(body, field)
    return typeof value === 'string' && ID_PATTERN.test(value) ? value : undefined
  }
  const projectId = idAt('project', 'project_id')
  if (projectId === undefined) return { organizationId }
  const environmentId = idAt('env', 'environment_id')
  return environmentId === undefined ? { organizationId, projectId } : { organizationId, projectId, environmentId }
}

const checkOrganizationHeader = (request: IncomingMessage): void => {
  const value = headerText(request, ORGANIZATION_HEADER)
  if (value === undefined)
    throw new DomainError('organization_header_required', 'This call needs the header X-Service-Organization-ID')
  if (!ID_PATTERN.test(value))
    throw new DomainError('validation_failed', 'The header X-Service-Organization-ID holds no organization id', {
      errors: [
        { in: 'header', pointer: 'X-Service-Organization-ID', code: 'invalid_format', message: 'must be an id' },
      ],
    })
}

// Not Sec-Fetch-Mode: Node's own fetch always sends it.
const checkServerToServer = (request: IncomingMessage): void => {
  const { origin, cookie, 'sec-fetch-site': site } = request.headers
  if (origin !== undefined || cookie !== undefined || site !== undefined)
    throw new DomainError('server_to_server_only', 'This call is for servers: it is refused to browsers')
}

const checkKey = (route: Route, key: string | undefined): void => {
  if (key === undefined && route.idempotency === 'required')
    throw new DomainError('idempotency_key_required', 'This call needs an Idempotency-Key header')
}

const parseBody = (bound: Bound, body: unknown): unknown => {
  // A route with fields of its own says which one is missing, also when nothing was sent.
  const given = body === undefined && bound.route.body !== undefined ? {} : body
  return validate(bound.body, given, 'body')
}

const noBuiltinLogin = (): DomainError =>
  new DomainError('builtin_login_disabled', 'Here an identity provider says who people are: sign in there')

/** What a call is, whoever makes it. */
const openCall = (route: Route, request: Request, exchange: Exchange): OpenCall => ({
  requestId: exchange.requestId,
  clientIp: exchange.clientIp,
  clientKey: limitKey(exchange.clientIp),
  userAgent: exchange.userAgent,
  method: request.method,
  route: route.path,
})

const bodyOf = async (route: Route, request: Request): Promise<unknown> =>
  route.method === 'get'
    ? undefined
    : route.speaksOAuth === true && isForm(request)
      ? readFormBody(request, route.maxBodyBytes ?? MAX_BODY_BYTES)
      : readJsonBody(request, route.maxBodyBytes ?? MAX_BODY_BYTES)

/** Serves what needs no credential. Some of it looks at one that is sent, which then has to be good. */
const serveOpen = async (
  bound: Bound,
  request: Request,
  exchange: Exchange,
  admission: Admission,
  presented: Presented | undefined,
): Promise<Reply> => {
  const { route, row } = bound
  checkAccept(request.headers.accept)
  const rawQuery = queryOf(request.url)
  const rawBody = await bodyOf(route, request)
  const caller = presented && (await admission.principal(exchange, presented, route, undefined))
  if (caller !== undefined) authorize(caller, row, { target: undefined })
  const params = validate(bound.params, request.params, 'path')
  const query = validate(bound.query, rawQuery, 'query')
  const body = route.method === 'get' ? undefined : parseBody(bound, rawBody)
  const call: OpenCall = { ...openCall(route, request, exchange), caller }
  return bound.handle({ params, query, body, call } as unknown as Input<Route>)
}

const serve = async (
  bound: Bound,
  request: Request,
  exchange: Exchange,
  admission: Admission,
  presented: Presented,
): Promise<Reply> => {
  const { route, row } = bound
  checkAccept(request.headers.accept)
  const rawQuery = queryOf(request.url)
  const rawBody = await bodyOf(route, request)
  const organizationId = organizationOf(route, request, rawQuery, rawBody)
  const principal = await admission.principal(exchange, presented, route, organizationId)
  const params = validate(bound.params, request.params, 'path') as Readonly<Record<string, string>>
  if (route.organization === 'header') checkOrganizationHeader(request)
  if (route.organization !== 'none' && organizationId === undefined) {
    validate(bound.query, rawQuery, 'query')
    parseBody(bound, rawBody)
  }
  const target = targetOf(organizationId, params, rawQuery, rawBody)
  authorize(principal, row, { target: route.target === 'record' ? 'in a record' : target, subject: params['subject'] })
  admission.countAllowed(exchange, route, organizationId)
  if (route.serverToServer === true) checkServerToServer(request)
  const idempotencyKey =
    route.idempotency === 'none' ? undefined : parseIdempotencyKey(request.headers['idempotency-key'])
  checkKey(route, idempotencyKey)
  const query = validate(bound.query, rawQuery, 'query')
  const body = route.method === 'get' ? undefined : parseBody(bound, rawBody)
  const call: Call = {
    ...openCall(route, request, exchange),
    principal,
    organizationId,
    target,
    pathParams: params,
    idempotencyKey,
    tell: headers => {
      exchange.credentialHeaders = headers
    },
    contentHash: idempotencyKey === undefined ? NO_CONTENT : contentHashOf(body, query),
  }
  return bound.handle({ params, query, body, call } as unknown as Input<Route>)
}

const locationOf = (route: Route, reply: Reply): Record<string, string> | undefined => {
  const template = route.success.location
  if (template === undefined) return undefined
  // Commands answer the bytes that they keep for replays.
  const body: unknown = Buffer.isBuffer(reply.body) ? JSON.parse(reply.body.toString('utf8')) : reply.body
  const id = fieldOf(body, 'id')
  if (typeof id !== 'string' || reply.headers?.['Location'] !== undefined) return undefined
  return { Location: template.replace('{id}', id), 'Retry-After': '1' }
}

const withLocation = (route: Route, reply: Reply): Reply => {
  const location = locationOf(route, reply)
  return location === undefined ? reply : { ...reply, headers: { ...reply.headers, ...location } }
}

const METHODS = new Map([
  ['get', 'GET, HEAD'],
  ['put', 'PUT'],
  ['post', 'POST'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
])

/** `/v1/x/{org}` in the router's words. */
const pattern = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ':$1')

/** `/x/all` before `/x/{id}`, which would take it: a word goes before a parameter. */
const wordsFirst = (a: Route, b: Route): number => {
  const [left, right] = [a.path.split('/'), b.path.split('/')]
  for (const [at, segment] of left.entries()) {
    const [isWord, otherIsWord] = [!segment.startsWith('{'), right[at]?.startsWith('{') === false]
    if (isWord !== otherIsWord) return isWord ? -1 : 1
  }
  return 0
}

/** The routes of each path, and its Allow header. */
const byPath = (routes: readonly Route[]): Map<string, { readonly routes: Route[]; readonly allow: string }> => {
  const groups = Map.groupBy(routes.toSorted(wordsFirst), route => route.path)
  return new Map(
    [...groups].map(([path, group]) => [
      path,
      { routes: group, allow: group.map(route => METHODS.get(route.method) ?? '').join(', ') },
    ]),
  )
}

/**
 * A router that serves every route.
 * @throws Error when a route has no row in the policy table
 */
export const bindRoutes = <Context>(
  handlers: HandlersOver<Context>,
  serving: Serving<Context>,
  table: { readonly routes: Readonly<Record<string, Route>>; readonly policy: Readonly<Record<string, PolicyRow>> } = {
    routes: ROUTES,
    policy: POLICY,
  },
): Router => {
  const { admission, context } = serving
  const router = Router({ caseSensitive: true, strict: true })
  const bind = (route: Route): Bound => ({
    route,
    row: policyRowOf(route, table.policy),
    params: route.params ?? NO_PARAMETERS,
    query: route.query ?? NO_PARAMETERS,
    body: route.body ?? NO_BODY,
    handle: input => {
      const handler = handlers[route.operationId as keyof Routes] as (
        input: unknown,
        context: Context,
      ) => Promise<Reply>
      return handler(input, context)
    },
  })
  const listener = (bound: Bound) => (request: Request, response: Response) => {
    const exchange = exchangeOf(request)
    exchange.route = bound.route.path
    const answer = async (): Promise<void> => {
      try {
        if (bound.route.builtinLogin === true && serving.builtinLogin === false) throw noBuiltinLogin()
        const { authorization } = request.headers
        const { role, credentials } = bound.row
        const isOpen = role === 'public' && (credentials.length === 0 || authorization === undefined)
        const presented = isOpen ? undefined : admission.present(exchange, authorization)
        const reply =
          role === 'public' || presented === undefined
            ? await serveOpen(bound, request, exchange, admission, presented)
            : await serve(bound, request, exchange, admission, presented)
        serving.reply(exchange, response, withLocation(bound.route, reply))
      } catch (error) {
        serving.fail(exchange, response, error)
      }
    }
    void answer()
  }
  for (const [path, { routes, allow }] of byPath(Object.values(table.routes))) {
    const bound = routes.map(route => [route.method, listener(bind(route))] as const)
    const at = router.route(pattern(path))
    for (const [method, listen] of bound) at[method](listen)
    at.all((request, response) => {
      const exchange = exchangeOf(request)
      exchange.route = path
      response.setHeader('Allow', allow)
      const error = new DomainError('method_not_allowed', `${path} takes ${allow}`)
      serving.fail(exchange, response, error)
    })
  }
  return router
}
