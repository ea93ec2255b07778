/** Reads a request's body that is a form, as clients of OAuth send it: each field once. Errors never quote what was sent. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { hasBody, readBody, refuseEncoding } from './body.ts'

const MAX_FIELDS = 64
const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?[ \t]*)?;?$/i

/** Whether a body is announced as a form. */
export const isForm = ({ headers }: IncomingMessage): boolean => FORM_TYPE.test(headers['content-type'] ?? '')

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new DomainError('invalid_encoding', 'The form holds a bad percent escape')
  }
}

/**
 * The fields; undefined when there is no body.
 * @throws DomainError `unsupported_media_type`, `payload_too_large`, `invalid_encoding`, `validation_failed`
 */
export const readFormBody = async (
  request: IncomingMessage,
  maxBytes: number,
): Promise<Readonly<Record<string, string>> | undefined> => {
  if (!hasBody(request)) return undefined
  refuseEncoding(request)
  const bytes = await readBody(request, maxBytes)
  if (!isUtf8(bytes)) throw new DomainError('invalid_encoding', 'The body is not UTF-8')
  const parts = bytes
    .toString('utf8')
    .split('&')
    .filter(part => part !== '')
  if (parts.length > MAX_FIELDS)
    throw new DomainError('validation_failed', `The form has too many fields, at most ${MAX_FIELDS} are read`)
  const fields = new Map<string, string>()
  for (const part of parts) {
    const at = part.includes('=') ? part.indexOf('=') : part.length
    const name = decode(part.slice(0, at))
    if (fields.has(name)) throw new DomainError('validation_failed', 'The form holds a field twice')
    fields.set(name, decode(part.slice(at + 1)))
  }
  return Object.fromEntries(fields)
}
