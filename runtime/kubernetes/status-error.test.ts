import assert from 'node:assert/strict'
import { answerError, retryAfterMs } from './status-error.ts'

const status = (reason: string, rest: object = {}): string =>
  JSON.stringify({ kind: 'Status', reason, message: 'why', ...rest })

describe('answerError', () => {
  for (const [code, body, reason] of [
    [400, status('BadRequest'), 'Invalid'],
    [401, status('Unauthorized'), 'Unavailable'],
    [403, status('Forbidden'), 'Forbidden'],
    [404, status('NotFound'), 'NotFound'],
    [404, '404 page not found', 'NotFound'],
    [408, '', 'Unavailable'],
    [409, status('AlreadyExists'), 'AlreadyExists'],
    [409, status('Conflict'), 'Conflict'],
    [410, status('Expired'), 'Gone'],
    [422, status('Invalid'), 'Invalid'],
    [429, status('TooManyRequests'), 'TooManyRequests'],
    [500, status('InternalError'), 'Unavailable'],
    [502, '<html>Bad Gateway</html>', 'Unavailable'],
    [504, status('Timeout'), 'Unavailable'],
    [504, status('Timeout', { details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } }), 'Gone'],
  ] as const)
    it(`takes ${code} ${body.slice(0, 60)} for ${reason}`, () => assert.equal(answerError(code, body).reason, reason))

  it('tells each violation by its field, without what the API server puts before a message', () => {
    const causes = [
      { reason: 'FieldValueInvalid', field: 'spec.size', message: 'Invalid value: 11: must be at most 10' },
      { reason: 'FieldValueInvalid', field: 'spec.a', message: 'Invalid value: "a \\": b": is wrong' },
      { reason: 'FieldValueInvalid', field: '<nil>', message: 'Invalid value: "object": the name is the identity' },
      { reason: 'FieldValueRequired', field: 'spec.b', message: 'Required value' },
    ]
    assert.deepEqual(answerError(422, status('Invalid', { details: { causes } })).violations, [
      { field: 'spec.size', message: 'must be at most 10' },
      { field: 'spec.a', message: 'is wrong' },
      { field: '', message: 'the name is the identity' },
      { field: 'spec.b', message: 'Required value' },
    ])
  })

  it('keeps the server’s words, and has words of its own where a proxy answered', () => {
    assert.equal(answerError(409, status('Conflict')).message, 'why')
    assert.equal(answerError(502, '<html>').message, 'The Kubernetes API server answered 502')
    assert.equal(answerError(500, 'null').message, 'The Kubernetes API server answered 500')
  })
})

describe('retryAfterMs', () => {
  it('reads the header, else the body, else nothing', () => {
    assert.equal(retryAfterMs('2', ''), 2000)
    assert.equal(retryAfterMs(undefined, status('TooManyRequests', { details: { retryAfterSeconds: 1 } })), 1000)
    assert.equal(retryAfterMs(undefined, ''), undefined)
    assert.equal(retryAfterMs('Wed, 21 Oct 2026 07:28:00 GMT', ''), undefined)
    assert.equal(retryAfterMs('-1', ''), undefined)
  })
})
