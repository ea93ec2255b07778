import { randomBytes } from 'node:crypto'

const GIVEN = /^[A-Za-z0-9._-]{8,64}$/

/** A new request id: a UUIDv7, so that ids sort by time. `now` in epoch milliseconds. */
export const newRequestId = (now: number): string => {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(now, 0, 6)
  bytes[6] = 0x70 | (bytes.readUInt8(6) & 0x0f)
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The caller's id where it is one, else a new one: a strange header is ignored, never an error. */
export const requestIdOf = (header: string | string[] | undefined, now: number): string =>
  typeof header === 'string' && GIVEN.test(header) ? header : newRequestId(now)
