/** Reads a request's body as bytes, with caps. */
import type { IncomingMessage } from 'node:http'
import { DomainError } from '../../lib/errors/domain-error.ts'

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

/** Whether a request announces a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean => {
  const { 'content-length': length, 'transfer-encoding': transfer } = headers
  return transfer !== undefined || (length !== undefined && length !== '0')
}

/** @throws DomainError `unsupported_media_type` */
export const refuseEncoding = ({ headers }: IncomingMessage): void => {
  const { 'content-encoding': encoding } = headers
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new DomainError('unsupported_media_type', 'A body must not have a Content-Encoding')
}

/** All bytes of a body. @throws DomainError `payload_too_large`, `invalid_json` when it breaks off */
export const readBody = (request: IncomingMessage, maxBytes: number): Promise<Buffer> => {
  const { 'content-length': length } = request.headers
  if (length !== undefined && Number(length) > maxBytes) return Promise.reject(tooLarge(maxBytes))
  return readBytes(request, maxBytes)
}
