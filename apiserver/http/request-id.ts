import { randomUUID } from 'node:crypto'

const GIVEN = /^[A-Za-z0-9._-]{8,64}$/

/** A new request id: a UUIDv7, so that ids sort by time. `now` in epoch milliseconds. */
export const newRequestId = (now: number): string => {
  const time = now.toString(16).padStart(12, '0')
  // A version 4 id brings its random part and its variant; node draws many at a time.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/** The caller's id where it is one, else a new one: a strange header is ignored, never an error. */
export const requestIdOf = (header: string | string[] | undefined, now: number): string =>
  typeof header === 'string' && GIVEN.test(header) ? header : newRequestId(now)
