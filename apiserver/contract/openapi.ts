/** Walks the routes and writes the OpenAPI 3.1 document. Nothing in it is written by hand twice. */
import { z } from 'zod'
import {
  type CreateDocumentOptions,
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import { ERROR_CODES, type ErrorCode } from '../../lib/errors/codes.ts'
import { errorMediaTypeOf, FORM_MEDIA_TYPE, problem } from './problem.ts'
import { errorCodesOf, type Route } from './route.ts'
import { organizationId } from './scalars.ts'

const idempotencyKey = z
  .string()
  .regex(/^[\u0021-\u007e]{1,255}$/)
  .meta({
    description:
      'Chosen by the client, 1-255 visible ASCII characters. A repeated request with the same key within 24 hours gets the first answer again, with Idempotency-Replayed: true. A key is its own per caller and route.',
    example: 'b7c1f0de-41',
    param: { id: 'IdempotencyKey', in: 'header', name: 'Idempotency-Key', required: true },
  })
const optionalIdempotencyKey = z
  .string()
  .regex(/^[\u0021-\u007e]{1,255}$/)
  .optional()
  .meta({
    description: 'As IdempotencyKey, but may be left out',
    param: { id: 'OptionalIdempotencyKey', in: 'header', name: 'Idempotency-Key' },
  })
const organizationHeader = organizationId.meta({
  description: 'Id of the organization that the call is about',
  param: { id: 'OrgHeader', in: 'header', name: 'X-Service-Organization-ID', required: true },
})
const requestId = z.string().meta({
  description: 'Names the request in logs, problems and audit events. Yours is kept if it is 8-64 of A-Z a-z 0-9 . _ -',
  header: { id: 'RequestId' },
})
const location = z.string().meta({ description: 'Where to read on', header: { id: 'Location' } })
const replayed = z
  .literal('true')
  .optional()
  .meta({
    description: 'Set when this is the stored answer of an earlier request with this key',
    header: { id: 'IdempotencyReplayed' },
  })
const rateLimit = z
  .string()
  .optional()
  .meta({
    description: 'What is left: "default";r=<requests>;t=<seconds>',
    header: { id: 'RateLimit' },
  })
const rateLimitPolicy = z
  .string()
  .optional()
  .meta({
    description: 'The limit in force: "default";q=<requests>;w=<seconds>',
    header: { id: 'RateLimitPolicy' },
  })
const retryAfter = z
  .string()
  .optional()
  .meta({ description: 'Seconds to wait', header: { id: 'RetryAfter' } })

const commonHeaders = z.object({
  'X-Request-Id': requestId,
  RateLimit: rateLimit,
  'RateLimit-Policy': rateLimitPolicy,
})

/** Example values of problems, one a status. */
const problemExample = (status: number, codes: readonly ErrorCode[]) => {
  const code = codes[0] ?? 'internal_error'
  return {
    type: `/problems/${code}`,
    title: ERROR_CODES[code].title,
    status,
    detail: ERROR_CODES[code].title,
    instance: 'urn:svc:request:0199f2c4-8a51-7c1e-9d40-3b1f5e8a7c22',
    code,
    request_id: '0199f2c4-8a51-7c1e-9d40-3b1f5e8a7c22',
  }
}

const errorResponses = (route: Route): ZodOpenApiResponsesObject => {
  const byStatus = Map.groupBy(errorCodesOf(route), code => ERROR_CODES[code].status)
  return Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, codes]) => [
        String(status),
        {
          description: codes.map(code => `\`${code}\``).join(', '),
          headers:
            status === 429 || status === 503 ? commonHeaders.extend({ 'Retry-After': retryAfter }) : commonHeaders,
          content: { [errorMediaTypeOf(route)]: { schema: problem, example: problemExample(status, codes) } },
        },
      ]),
  )
}

const successResponse = (route: Route): ZodOpenApiResponsesObject => {
  const { status, description, body } = route.success
  let headers = commonHeaders
  if (route.success.location !== undefined) headers = headers.extend({ Location: location })
  if (route.idempotency !== 'none') headers = headers.extend({ 'Idempotency-Replayed': replayed })
  return {
    [String(status)]: {
      description,
      headers,
      ...(body === undefined
        ? {}
        : { content: { 'application/json': { schema: body, example: route.examples.response } } }),
    },
  }
}

/** Says in the document who may call a route; undefined where nobody is asked. */
export type AccessSentence = (route: Route) => string | undefined

const operation = (route: Route, access: AccessSentence): ZodOpenApiOperationObject => {
  const headers = [
    ...(route.organization === 'header' ? [organizationHeader] : []),
    ...(route.idempotency === 'required' ? [idempotencyKey] : []),
    ...(route.idempotency === 'optional' ? [optionalIdempotencyKey] : []),
  ]
  const description = [route.description, access(route)].filter(part => part !== undefined).join('\n\n')
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(description === '' ? {} : { description }),
    ...(route.params === undefined && route.query === undefined
      ? {}
      : {
          requestParams: {
            ...(route.params === undefined ? {} : { path: route.params }),
            ...(route.query === undefined ? {} : { query: route.query }),
          },
        }),
    ...(headers.length === 0 ? {} : { parameters: headers }),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: {
              'application/json': { schema: route.body, example: route.examples.request },
              ...(route.speaksOAuth === true && {
                [FORM_MEDIA_TYPE]: { schema: route.body, example: route.examples.request },
              }),
            },
          },
        }),
    responses: { ...successResponse(route), ...errorResponses(route) },
    security:
      route.policy === 'public' ? [] : route.policy === 'public.or-session' ? [{}, { bearer: [] }] : [{ bearer: [] }],
  }
}

const tidy: NonNullable<CreateDocumentOptions['override']> = ({ jsonSchema, io }) => {
  // A closed response schema would make generated clients refuse the fields of a later release.
  if (io === 'output' && jsonSchema.type === 'object' && jsonSchema.additionalProperties === false)
    delete jsonSchema.additionalProperties
  // What JSON numbers can hold at most says nothing about the field.
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

/** Of the contract, and of the program that serves it. */
export const VERSION = '0.1.0'

/** The OpenAPI 3.1 document of these routes. `access` says in words who may call a route. */
export const openApiDocument = (routes: readonly Route[], access: AccessSentence = () => undefined) => {
  const paths: ZodOpenApiPathsObject = {}
  for (const route of routes) paths[route.path] = { ...paths[route.path], [route.method]: operation(route, access) }
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Control plane for managed Postgres',
        version: VERSION,
        description:
          'Environments of managed Postgres. Mutating environment calls answer 202 with an operation to poll. Every error is a Problem Details document whose `code` is stable. Unknown fields and parameters in requests are refused; expect new fields in answers.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'This server' }],
      tags: [...new Set(routes.map(route => route.tag))].sort().map(name => ({ name })),
      paths,
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'svc_pat_…',
            description:
              'A personal access token (`svc_pat_…`), an agent’s token (`svc_agt_…`), an API key of an organization (`svck_…`) or a session’s token (`svc_ses_…`)',
          },
        },
      },
    },
    { override: tidy },
  )
}
