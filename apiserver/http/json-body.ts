/** Reads a request's JSON body, with caps. Errors never quote what was sent. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { exceedsShape } from './json-shape.ts'

const MAX_DEPTH = 64
const MAX_KEYS = 2000
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?[ \t]*)?;?$/i

const tooLarge = (maxBytes: number): DomainError =>
  new DomainError('payload_too_large', `The body is too large, at most ${maxBytes} bytes are read`)

const readBytes = (request: IncomingMessage, maxBytes: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes)
        reject(tooLarge(maxBytes)) // what still comes is read and thrown away, so that the answer arrives
      else chunks.push(chunk)
    })
    request.once('end', () => {
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size))
    })
    const gone = (): void => reject(new DomainError('invalid_json', 'The body ended before its announced length'))
    request.once('error', gone)
    request.once('close', gone)
  })

const checkType = (request: IncomingMessage): void => {
  const { 'content-type': type, 'content-encoding': encoding } = request.headers
  if (type === undefined || !JSON_TYPE.test(type))
    throw new DomainError('unsupported_media_type', 'A body must have Content-Type: application/json in UTF-8')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new DomainError('unsupported_media_type', 'A body must not have a Content-Encoding')
}

/**
 * The parsed body; undefined when there is none.
 * @throws DomainError `unsupported_media_type`, `payload_too_large`, `invalid_encoding`, `invalid_json`
 */
export const readJsonBody = async (request: IncomingMessage, maxBytes: number): Promise<unknown> => {
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers
  if (transfer === undefined && (length === undefined || length === '0')) return undefined
  checkType(request)
  if (length !== undefined && Number(length) > maxBytes) throw tooLarge(maxBytes)
  const bytes = await readBytes(request, maxBytes)
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
