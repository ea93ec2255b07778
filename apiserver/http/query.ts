/** Splits a request target, strictly: a bad escape and a repeated parameter are errors. */
import { DomainError } from '../../lib/errors/domain-error.ts'

const NOTHING: Readonly<Record<string, string>> = Object.freeze({})

const badEscape = (): DomainError => new DomainError('invalid_encoding', 'The URL holds a bad percent escape')

const decode = (part: string): string => {
  try {
    return decodeURIComponent(part.includes('+') ? part.replaceAll('+', ' ') : part)
  } catch {
    throw badEscape()
  }
}

/** The path of a request target, as sent. */
export const pathOf = (target: string): string => {
  const at = target.indexOf('?')
  return at === -1 ? target : target.slice(0, at)
}

/** @throws DomainError `invalid_encoding` when the path cannot be decoded */
export const checkPathEncoding = (path: string): void => {
  if (!path.includes('%')) return
  try {
    decodeURIComponent(path)
  } catch {
    throw badEscape()
  }
}

/**
 * The query parameters of a request target.
 * @throws DomainError `invalid_encoding`; `validation_failed` when one is given twice
 */
export const queryOf = (target: string): Readonly<Record<string, string>> => {
  const at = target.indexOf('?')
  if (at === -1 || at === target.length - 1) return NOTHING
  const query = new Map<string, string>()
  for (const pair of target.slice(at + 1).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    if (query.has(name))
      throw new DomainError('validation_failed', 'A query parameter is given twice', {
        errors: [{ in: 'query', pointer: name.slice(0, 64), code: 'repeated', message: 'must be given once' }],
      })
    query.set(name, equals === -1 ? '' : decode(pair.slice(equals + 1)))
  }
  // fromEntries defines own properties, so that a parameter called __proto__ is one too.
  return Object.fromEntries(query)
}
