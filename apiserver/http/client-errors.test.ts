import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { answerClientError } from './client-errors.ts'

const answerTo = async (fields: object): Promise<string> => {
  const socket = new PassThrough()
  answerClientError(Object.assign(new Error('fault'), fields), socket, 'https://db.example.com')
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

describe('answers to what could not be parsed', () => {
  for (const [why, fields, status, code] of [
    ['a request that is too slow', { code: 'ERR_HTTP_REQUEST_TIMEOUT' }, 408, 'request_timeout'],
    ['headers that are too large', { code: 'HPE_HEADER_OVERFLOW' }, 431, 'headers_too_large'],
    [
      'a request line that is too long',
      { code: 'HPE_HEADER_OVERFLOW', rawPacket: Buffer.from(`GET /${'x'.repeat(9000)}`) },
      414,
      'uri_too_long',
    ],
    [
      'long headers behind a short request line',
      { code: 'HPE_HEADER_OVERFLOW', rawPacket: Buffer.from(`GET / HTTP/1.1\r\nA: ${'x'.repeat(9000)}`) },
      431,
      'headers_too_large',
    ],
    ['anything else', { code: 'HPE_INVALID_METHOD' }, 400, 'malformed_request'],
  ] as const)
    it(`are a whole problem document for ${why}`, async () => {
      const [head = '', body = ''] = (await answerTo(fields)).split('\r\n\r\n')
      assert.ok(head.startsWith(`HTTP/1.1 ${status} `), head)
      assert.match(head, /\r\nContent-Type: application\/problem\+json\r\n/)
      assert.match(head, new RegExp(`\\r\\nContent-Length: ${Buffer.byteLength(body)}\\r\\n`))
      assert.match(head, /\r\nConnection: close/)
      const problem = JSON.parse(body) as { code: string; status: number; type: string; request_id: string }
      assert.deepEqual(
        [problem.code, problem.status, problem.type],
        [code, status, `https://db.example.com/problems/${code}`],
      )
      assert.ok(head.includes(`X-Request-Id: ${problem.request_id}`))
    })

  it('say nothing to a peer that is gone', () => {
    const socket = new PassThrough()
    answerClientError(Object.assign(new Error('gone'), { code: 'ECONNRESET' }), socket, '')
    assert.ok(socket.destroyed)
  })
})
