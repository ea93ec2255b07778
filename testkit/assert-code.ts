import assert from 'node:assert/strict'
import { DomainError } from '../lib/errors/domain-error.ts'

/** For assert.rejects: a DomainError with this code, and at least these details. */
export const isCode =
  (code: string, details: Readonly<Record<string, unknown>> = {}) =>
  (error: unknown): true => {
    assert.ok(error instanceof DomainError, String(error))
    assert.equal(error.code, code, error.message)
    assert.deepEqual({ ...error.details, ...details }, error.details)
    return true
  }
