/** Problem Details (RFC 9457): the body of every error. */
import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from '../../lib/errors/codes.ts'
import type { DomainError } from '../../lib/errors/domain-error.ts'

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'
/** What clients of OAuth send. */
export const FORM_MEDIA_TYPE = 'application/x-www-form-urlencoded'

/** The media type of a route's errors. */
export const errorMediaTypeOf = ({ speaksOAuth }: { readonly speaksOAuth?: true }): string =>
  speaksOAuth === true ? 'application/json' : PROBLEM_MEDIA_TYPE

/** More than these are not listed. */
const MAX_FIELD_ERRORS = 20

const fieldError = z.object({
  in: z.enum(['body', 'query', 'path', 'header']).meta({ description: 'Where it is wrong' }),
  pointer: z.string().meta({ description: 'JSON pointer fragment into the body, or the name', example: '#/name' }),
  code: z.string().meta({ description: 'What is wrong, in one word', example: 'too_long' }),
  message: z.string().meta({ description: 'What is wrong, for people; never quotes the value' }),
})

/** The schema of a problem. Some codes add fields of their own, such as `required_role` or `phase`. */
export const problem = z
  .looseObject({
    type: z.string().meta({ description: 'A page about this code', example: '/problems/validation_failed' }),
    title: z.string().meta({ description: 'The code in words', example: 'Validation failed' }),
    status: z.int().meta({ description: 'The HTTP status', example: 400 }),
    detail: z.string().meta({ description: 'What went wrong this time, for people', example: '2 fields are invalid.' }),
    instance: z.string().meta({
      description: 'Names this occurrence',
      example: 'urn:svc:request:0199f2c4-8a51-7c1e-9d40-3b1f5e8a7c22',
    }),
    code: z
      .enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]])
      .meta({ id: 'ErrorCode', description: 'The stable word to branch on', example: 'validation_failed' }),
    request_id: z
      .string()
      .meta({ description: 'Find it in the logs', example: '0199f2c4-8a51-7c1e-9d40-3b1f5e8a7c22' }),
    errors: z.array(fieldError).max(MAX_FIELD_ERRORS).optional(),
  })
  .meta({ id: 'Problem' })
export type Problem = z.infer<typeof problem>

/** The problem document of an error. `base` stands before `/problems/…`; empty makes it relative to the server. */
export const problemOf = (error: DomainError, requestId: string, base = ''): Problem => {
  const { status, title } = ERROR_CODES[error.code]
  return {
    ...error.details,
    type: `${base}/problems/${error.code}`,
    title,
    status,
    detail: error.message,
    instance: `urn:svc:request:${requestId}`,
    code: error.code,
    request_id: requestId,
    ...(error.errors.length > 0 ? { errors: error.errors.slice(0, MAX_FIELD_ERRORS) } : {}),
  }
}

const OAUTH_OWN: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'invalid_grant',
  'unsupported_grant_type',
])

/** The error of a code in OAuth's words (RFC 6749, section 5.2, and RFC 8628, section 3.5). */
const oauthErrorOf = (code: ErrorCode): string => {
  if (OAUTH_OWN.has(code)) return code
  const { status } = ERROR_CODES[code]
  if (status === 429 || status === 503) return 'temporarily_unavailable'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** The same problem for a client of OAuth: its fields are beside ours. */
export const oauthProblemOf = (error: DomainError, requestId: string, base = ''): Problem => ({
  ...problemOf(error, requestId, base),
  error: oauthErrorOf(error.code),
  // What RFC 6749 allows there: printable ASCII without quotes and backslashes.
  error_description: error.message.replaceAll('’', "'").replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?'),
})
