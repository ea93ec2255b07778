/** From zod's issues to a problem's field errors. Messages never quote what was sent. */
import type { z } from 'zod'
import type { ErrorCode } from '../../lib/errors/codes.ts'
import { DomainError, type FieldError } from '../../lib/errors/domain-error.ts'
import { codeOfParams } from '../contract/scalars.ts'

type Place = FieldError['in']
type Issue = z.core.$ZodIssue

const WORDS: Readonly<Partial<Record<NonNullable<Issue['code']>, string>>> = {
  invalid_type: 'invalid_type',
  invalid_format: 'invalid_format',
  invalid_value: 'invalid_value',
  too_small: 'too_small',
  too_big: 'too_big',
  unrecognized_keys: 'unknown_field',
  not_multiple_of: 'invalid_value',
  invalid_union: 'invalid_value',
}

const MAX_POINTER = 200

/** A JSON pointer fragment into a body, or a parameter's name. */
const pointer = (place: Place, path: readonly PropertyKey[]): string => {
  const parts = path.map(part => String(part))
  if (place !== 'body') return parts.join('.').slice(0, MAX_POINTER)
  const escaped = parts.map(part => encodeURIComponent(part.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1')))
  return ['#', ...escaped].join('/').slice(0, MAX_POINTER)
}

const isMissing = (issue: Issue): boolean => issue.code === 'invalid_type' && issue.input === undefined

const codeOf = (issue: Issue): string => {
  if (isMissing(issue)) return 'required'
  if (issue.code === 'custom') {
    const reason: unknown = issue.params?.['reason']
    return codeOfParams(issue.params) ?? (typeof reason === 'string' ? reason : 'invalid_value')
  }
  return WORDS[issue.code] ?? 'invalid_value'
}

const messageOf = (issue: Issue): string => {
  if (isMissing(issue)) return 'must be given'
  if (issue.code === 'unrecognized_keys') return 'is not known here'
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  if (issue.code === 'invalid_type') return `must be of type ${issue.expected}`
  return issue.message
}

/** What a field could be called. Anything else is no name but content that was sent as one, a secret say. */
const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/

const fieldErrors = (place: Place, issue: Issue): FieldError[] => {
  const unknown = (key: string): readonly PropertyKey[] => (FIELD_NAME.test(key) ? [...issue.path, key] : issue.path)
  const at = issue.code === 'unrecognized_keys' ? issue.keys.map(unknown) : [issue.path]
  return at.map(path => ({ in: place, pointer: pointer(place, path), code: codeOf(issue), message: messageOf(issue) }))
}

/** The code of the whole: one of its own when every issue carries that one, else `validation_failed`. */
const overallCode = (issues: readonly Issue[]): ErrorCode => {
  const codes = new Set(issues.map(issue => (issue.code === 'custom' ? codeOfParams(issue.params) : undefined)))
  const [only] = codes
  return codes.size === 1 && only !== undefined ? only : 'validation_failed'
}

const sentence = (errors: readonly FieldError[]): string => {
  const [first] = errors
  if (errors.length !== 1 || first === undefined) return `${errors.length} fields are invalid`
  const where = first.in === 'body' ? `body field ${first.pointer}` : `${first.in} parameter ${first.pointer}`
  return `The ${where} ${first.message}`
}

/**
 * The parsed value.
 * @throws DomainError `validation_failed`, or the code that all issues carry
 */
export const validate = <S extends z.ZodType>(schema: S, value: unknown, place: Place): z.output<S> => {
  const result = schema.safeParse(value, { reportInput: true })
  if (result.success) return result.data
  const { issues } = result.error
  const errors = issues.flatMap(issue => fieldErrors(place, issue))
  throw new DomainError(overallCode(issues), sentence(errors), { errors })
}
