/** Answers sockets whose request could not be parsed, as well as that is possible. */
import type { Duplex } from 'node:stream'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { newRequestId } from './request-id.ts'
import { rawProblem } from './send.ts'
import { MAX_URL_LENGTH } from './traffic.ts'

interface ParserError extends Error {
  readonly code?: string
  readonly rawPacket?: Buffer
}

/** Whether the request line alone is too long. Only the packet that broke the cap is there to look at. */
const hasLongRequestLine = (packet: Buffer | undefined): boolean => {
  if (packet === undefined) return false
  const end = packet.indexOf('\r\n')
  return (
    /^[A-Z]+ /.test(packet.subarray(0, 16).toString('latin1')) && (end === -1 ? packet.length : end) > MAX_URL_LENGTH
  )
}

const errorOf = ({ code, rawPacket }: ParserError): DomainError => {
  if (code === 'HPE_HEADER_OVERFLOW')
    return hasLongRequestLine(rawPacket)
      ? new DomainError('uri_too_long', 'The URL is too long')
      : new DomainError('headers_too_large', 'The headers are too large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new DomainError('request_timeout', 'The request did not arrive in time')
  return new DomainError('malformed_request', 'The request is not HTTP as RFC 9112 has it')
}

/** For a server's `clientError`; `base` stands before the page of the problem's type. */
export const answerClientError = (error: Error, socket: Duplex, base: string): void => {
  const { code } = error as ParserError
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  socket.end(rawProblem(errorOf(error), newRequestId(Date.now()), base))
}
