/** The scalars that requests and responses are made of. */
import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from '../../lib/errors/codes.ts'
import { MAX_TTL_HOURS, POSTGRES_MAJOR } from '../../lib/model/environment.ts'
import { ID_PATTERN } from '../../lib/model/identifiers.ts'

// Postgres refuses U+0000 in text and jsonb, and half of a surrogate pair in jsonb: refused here, once.
const isStorable = (text: string): boolean => !text.includes('\u0000') && text.isWellFormed()

/** Any text that can be kept, between two lengths in UTF-16 units. */
export const text = (min: number, max: number) =>
  z
    .string()
    .min(min)
    .max(max)
    .refine(isStorable, { error: 'must not contain NUL or unpaired surrogates', params: { reason: 'invalid_text' } })

/** An issue with an error code of its own instead of `validation_failed`. */
export const withCode = (code: ErrorCode, message: string) => ({ error: message, params: { code } })

/** The error code that an issue's parameters carry, if any: the other side of `withCode`. */
export const codeOfParams = (params: Readonly<Record<string, unknown>> | undefined): ErrorCode | undefined => {
  const code = params?.['code']
  return typeof code === 'string' && code in ERROR_CODES ? (code as ErrorCode) : undefined
}

/** The schema of an organization, project or environment id, described. */
export const idOf = (what: string, example: string) =>
  z
    .string()
    .regex(ID_PATTERN, 'must be 2-64 lowercase letters, digits or hyphens, with a letter or digit at both ends')
    .meta({ description: `Id of the ${what}`, example })

export const organizationId = idOf('organization', 'acme')
export const projectId = idOf('project', 'shop')
export const environmentId = idOf('environment', 'pr-41')

/** An operation id: `op_` and a time-ordered random part. */
export const operationId = z
  .string()
  .regex(/^op_[0-9a-z]{20,40}$/, 'must be an operation id, op_ and 20-40 lowercase letters or digits')
  .meta({ description: 'Id of the operation', example: 'op_06dm3qz5hx7n0c8k2v4r9w1tbe' })

/** A token id: `tok_` and a time-ordered random part. */
export const tokenId = z
  .string()
  .regex(/^tok_[0-9a-z]{20,40}$/, 'must be a token id, tok_ and 20-40 lowercase letters or digits')
  .meta({ description: 'Id of the token', example: 'tok_06dm3qz5hx7n0c8k2v4r9w1tbe' })

/** An API key's id: `key_` and a time-ordered random part. */
export const apiKeyId = z
  .string()
  .regex(/^key_[0-9a-z]{20,40}$/, 'must be an API key’s id, key_ and 20-40 lowercase letters or digits')
  .meta({ description: 'Id of the API key', example: 'key_06dm3qz5hx7n0c8k2v4r9w1tbe' })

/** An invitation's id: `inv_` and a time-ordered random part. */
export const invitationId = z
  .string()
  .regex(/^inv_[0-9a-z]{20,40}$/, 'must be an invitation’s id, inv_ and 20-40 lowercase letters or digits')
  .meta({ description: 'Id of the invitation', example: 'inv_06dm3qz5hx7n0c8k2v4r9w1tbe' })

/** A session's id: `ses_` and a time-ordered random part. */
export const sessionId = z
  .string()
  .regex(/^ses_[0-9a-z]{20,40}$/, 'must be a session’s id, ses_ and 20-40 lowercase letters or digits')
  .meta({ description: 'Id of the session', example: 'ses_06dm3qz5hx7n0c8k2v4r9w1tbe' })

/** ISO 8601 UTC, e.g. `2026-11-27T10:00:00.000Z`. */
export const isoTime = z.string().meta({
  description: 'ISO 8601 UTC',
  format: 'date-time',
  example: '2026-11-27T10:00:00.000Z',
})

/** Whole seconds since 1970. */
export const epochSeconds = z.int().min(0).meta({ description: 'Epoch seconds', example: 1795773600 })

const MAX_DIGITS = 15 // 10^15 is below 2^53: whatever passes is exact

/** A whole number in a query: digits only, so that neither `0x10`, `1e2`, blanks nor twenty digits pass. */
export const queryInteger = (min: number, max: number) =>
  z
    .string()
    .regex(new RegExp(`^[0-9]{1,${MAX_DIGITS}}$`), `must be a whole number between ${min} and ${max}`)
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .meta({ override: { type: 'integer', minimum: min, maximum: max, pattern: undefined } })

/** How many records a list answers at most. */
export const limit = (max: number, preset: number) =>
  queryInteger(1, max)
    .default(preset)
    .meta({
      description: `How many records to answer at most, 1-${max}`,
      override: { type: 'integer', minimum: 1, maximum: max, default: preset },
    })

/** Where a list goes on: the `next_cursor` of the page before. Opaque to clients. */
export const cursor = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,200}$/, 'must be the next_cursor of an earlier answer')
  .meta({ description: 'The `next_cursor` of the page before' })

/** The `next_cursor` of a list's answer. */
export const nextCursor = z
  .string()
  .nullable()
  .meta({ description: 'Give it as `after` to read on; null: there is no more', example: null })

/** The query of a list that takes nothing else. */
export const pageQuery = z.strictObject({ after: cursor.optional(), limit: limit(200, 100) })

/** Hours to live: its own error code, so not `z.int()`. */
export const ttlHours = z
  .custom<number>(
    value => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_TTL_HOURS,
    withCode('invalid_ttl', `must be a whole number of hours between 1 and ${MAX_TTL_HOURS}`),
  )
  .meta({
    description: `Hours to live, 1-${MAX_TTL_HOURS}`,
    example: 24,
    override: { type: 'integer', minimum: 1, maximum: MAX_TTL_HOURS },
  })

/** The only Postgres major of this release: another number has its own error code. */
export const postgresMajor = z
  .int()
  .refine(value => value === POSTGRES_MAJOR, withCode('unsupported_postgres_major', `must be ${POSTGRES_MAJOR}`))
  .meta({ description: `Major version of Postgres: ${POSTGRES_MAJOR}`, example: POSTGRES_MAJOR })

/** A label without meaning for self-hosted deployments. */
export const region = text(1, 64).meta({ description: 'A label', example: 'eu-central' })
