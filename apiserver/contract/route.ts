/** What a route is: everything that the server, the policy table, the documents and the tests need to know of an endpoint. */
import type { z } from 'zod'
import type { ErrorCode } from '../../lib/errors/codes.ts'

export type Method = 'get' | 'put' | 'post' | 'patch' | 'delete'

/** Where a request names the organization whose membership decides; `none`: the call is about the caller or the service. */
export type OrganizationPlace = 'path' | 'query' | 'body' | 'header' | 'none'

/** One endpoint. `path` is a template, `/v1/organizations/{org}`; `errors` are the codes beyond those that every such route has. */
export interface Route {
  readonly operationId: string
  readonly method: Method
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** Names a row of the policy table; `public` routes take no credential. */
  readonly policy: string
  readonly organization: OrganizationPlace
  /** What the call is about stands in a record that its handler reads, which then judges a credential's scopes by it. */
  readonly target?: 'record'
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  /** Refused when a browser sends it: with an Origin, Sec-Fetch-Site or Cookie header. */
  readonly serverToServer?: true
  /** Counted by a limit of its own, beside the general ones: for each credential, or for each organization once it may be called. */
  readonly rate?: 'connection' | 'verification'
  /** Of the built-in login: refused where an identity provider says who people are. */
  readonly builtinLogin?: true
  /**
   * For clients that speak OAuth 2.0: forms are read too, and errors are problems with `error` and `error_description`
   * (RFC 6749, section 5.2), as application/json, which is all that such clients read.
   */
  readonly speaksOAuth?: true
  /** Bytes of a body that are read at most; by default 100 KiB. */
  readonly maxBodyBytes?: number
  readonly idempotency: 'required' | 'optional' | 'none'
  readonly success: {
    readonly status: 200 | 201 | 202 | 204
    readonly description: string
    readonly body?: z.ZodType
    /** 201, 202: the answer carries a Location. */
    readonly location?: string
  }
  readonly errors: readonly ErrorCode[]
  /** Shown in the document; checked against the schemas by a test. */
  readonly examples: { readonly request?: unknown; readonly response?: unknown }
}

/** Keeps the literal types of a route, so that handlers can be typed from it. */
export const defineRoute = <const R extends Route>(route: R): R => route

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined

/** What a handler is given of a route's path. */
export type ParamsOf<R extends Route> = Parsed<R['params']>
/** What a handler is given of a route's query. */
export type QueryOf<R extends Route> = Parsed<R['query']>
/** What a handler is given of a route's body, after defaults. */
export type BodyOf<R extends Route> = Parsed<R['body']>
/** The success status of a route. */
export type StatusOf<R extends Route> = R['success']['status']
/** The body of a route's success; undefined for 204. */
export type AnswerOf<R extends Route> = R['success'] extends { readonly body: infer S extends z.ZodType }
  ? z.input<S>
  : undefined

const EVERY_ROUTE: readonly ErrorCode[] = [
  'malformed_request',
  'request_timeout',
  'validation_failed',
  'invalid_encoding',
  'not_acceptable',
  'payload_too_large',
  'uri_too_long',
  'headers_too_large',
  'rate_limited',
  'internal_error',
  'shutting_down',
]
const WITH_CREDENTIAL: readonly ErrorCode[] = [
  'unauthenticated',
  'invalid_token',
  'credential_not_allowed',
  'database_unavailable',
  'identity_provider_unavailable',
]
const WITH_BODY: readonly ErrorCode[] = ['invalid_json', 'unsupported_media_type']
const WITH_KEY: readonly ErrorCode[] = ['idempotency_key_invalid', 'idempotency_in_progress', 'idempotency_key_reused']

/** Every code that a route can answer. */
export const errorCodesOf = (route: Route): readonly ErrorCode[] => [
  ...new Set([
    ...route.errors,
    ...EVERY_ROUTE,
    ...(route.policy === 'public' ? [] : WITH_CREDENTIAL),
    ...(route.builtinLogin === true ? (['builtin_login_disabled'] as const) : []),
    ...(route.organization === 'none' ? [] : (['organization_not_found', 'forbidden', 'insufficient_scope'] as const)),
    ...(route.organization === 'header' ? (['organization_header_required'] as const) : []),
    ...(route.method === 'get' ? [] : WITH_BODY),
    ...(route.idempotency === 'none' ? [] : WITH_KEY),
    ...(route.idempotency === 'required' ? (['idempotency_key_required'] as const) : []),
  ]),
]
