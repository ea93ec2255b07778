/** What an API server's refusal means: its Status body → StoreError. */
import type { Violation } from '../../lib/model/resource.ts'
import { StoreError, type StoreErrorReason } from '../store/store-error.ts'
import { refusalIn } from './refusal.ts'

/** The body of a refusal, as far as it is read. */
export interface Status {
  readonly reason?: string
  readonly message?: string
  readonly details?: {
    readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[]
    readonly retryAfterSeconds?: number
  }
}

const reasonOf = (code: number, { reason, details }: Status): StoreErrorReason => {
  // This server has not come as far (yet, or for good when it lost its disk): what was listed there is no start.
  if (details?.causes?.some(cause => cause.reason === 'ResourceVersionTooLarge')) return 'Gone'
  if (code === 404) return 'NotFound'
  if (code === 409) return reason === 'AlreadyExists' ? 'AlreadyExists' : 'Conflict'
  if (code === 410) return 'Gone'
  if (code === 403) return 'Forbidden'
  if (code === 429) return 'TooManyRequests'
  // 401 outlives its retry only while a credential is being replaced; 408 is a time-out.
  if (code === 401 || code === 408 || code >= 500) return 'Unavailable'
  return 'Invalid'
}

/** What the API server puts before a rule's message: what was wrong, as a JSON scalar (for a rule of ours, its type). */
const VALUE = /^Invalid value: (?:"(?:[^"\\]|\\.)*"|[\w.+-]+): /

/** A rule at the root of an object names no field. */
const violationsOf = (status: Status): Violation[] =>
  (status.details?.causes ?? []).map(({ field = '', message = '' }) => ({
    field: field === '<nil>' ? '' : field,
    message: message.replace(VALUE, ''),
  }))

const parsed = (body: string): Status => {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    // A proxy's page: whatever it says, the code says enough.
    return {}
  }
}

/** The StoreError of a Status, such as a watch's error event carries. */
export const statusError = (code: number, status: Status): StoreError =>
  new StoreError(reasonOf(code, status), status.message ?? `The Kubernetes API server answered ${code}`, {
    violations: violationsOf(status),
    refusal: refusalIn(code, status.message ?? ''),
  })

/** The StoreError of a refused request. */
export const answerError = (code: number, body: string): StoreError => statusError(code, parsed(body))

/** How long a refused request should wait at least: the header's seconds, else the body's. */
export const retryAfterMs = (header: string | string[] | undefined, body: string): number | undefined => {
  const seconds = Number(Array.isArray(header) ? header[0] : (header ?? parsed(body).details?.retryAfterSeconds))
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined
}
