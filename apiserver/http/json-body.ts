/** Reads a request's JSON body, with caps. Errors never quote what was sent. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { hasBody, readBody, refuseEncoding } from './body.ts'
import { exceedsShape } from './json-shape.ts'

const MAX_DEPTH = 64
const MAX_KEYS = 2000
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?[ \t]*)?;?$/i

const checkType = (request: IncomingMessage): void => {
  const { 'content-type': type } = request.headers
  if (type === undefined || !JSON_TYPE.test(type))
    throw new DomainError('unsupported_media_type', 'A body must have Content-Type: application/json in UTF-8')
  refuseEncoding(request)
}

/**
 * The parsed body; undefined when there is none.
 * @throws DomainError `unsupported_media_type`, `payload_too_large`, `invalid_encoding`, `invalid_json`
 */
export const readJsonBody = async (request: IncomingMessage, maxBytes: number): Promise<unknown> => {
  if (!hasBody(request)) return undefined
  checkType(request)
  const bytes = await readBody(request, maxBytes)
  if (bytes.length === 0) return undefined
  if (!isUtf8(bytes)) throw new DomainError('invalid_encoding', 'The body is not UTF-8')
  if (exceedsShape(bytes, MAX_DEPTH, MAX_KEYS))
    throw new DomainError('invalid_json', `The body nests deeper than ${MAX_DEPTH} levels or has over ${MAX_KEYS} keys`)
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown
  } catch {
    throw new DomainError('invalid_json', 'The body is not JSON')
  }
}
