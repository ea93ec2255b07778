/** Requests as they come from strangers: bytes of our choice, on a socket or through node's client without its checks of meaning. */
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import type { ApiAnswer } from './api-answers.ts'
import { judgeExchange } from './secrets-of-tests.ts'

export interface RawRequest {
  readonly method: string
  /** The request target, as it goes over the wire. */
  readonly target: string
  /** Names may come twice. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body?: Buffer | undefined
}

const agent = new Agent({ keepAlive: true, maxSockets: 32 })

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Sends a request and reads its answer: for whoever judges by a canary of their own. */
export const sendUnjudged = (baseUrl: string, raw: RawRequest): Promise<ApiAnswer> =>
  new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(baseUrl)
    const headers = [...raw.headers.flat(), 'Host', host]
    if (raw.body !== undefined && !raw.headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name)))
      headers.push('Content-Length', String(raw.body.length))
    const outgoing = request({ agent, hostname, port, method: raw.method, path: raw.target, headers }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString()
        const pairs = Object.entries(response.headersDistinct).map(
          ([name, values]) => [name, (values ?? []).join(', ')] as [string, string],
        )
        resolve({ status: response.statusCode ?? 0, headers: new Headers(pairs), text, body: parsed(text) })
      })
    })
    outgoing.once('error', reject)
    outgoing.end(raw.body)
  })

const headerOf = (headers: RawRequest['headers'], wanted: string): string | undefined =>
  headers.find(([name]) => name.toLowerCase() === wanted)?.[1]

/** Sends a request, reads its answer, and judges whether that keeps secrets. */
export const sendRaw = async (baseUrl: string, raw: RawRequest): Promise<ApiAnswer> => {
  const answer = await sendUnjudged(baseUrl, raw)
  const sent = {
    authorization: headerOf(raw.headers, 'authorization'),
    idempotencyKey: headerOf(raw.headers, 'idempotency-key'),
    body: raw.body?.toString(),
  }
  judgeExchange(`${raw.method} ${raw.target}`.slice(0, 80), sent, answer)
  return answer
}

/** Writes bytes to a socket and reads until it closes; the answer as far as it is HTTP, judged as others are. */
export const sendBytes = async (baseUrl: string, bytes: Buffer | string): Promise<ApiAnswer> => {
  const answer = await writeAndRead(baseUrl, bytes)
  const [head = '', ...rest] = bytes.toString().split('\r\n\r\n')
  const [line = '', ...lines] = head.split('\r\n')
  const valueOf = (name: string): string | undefined =>
    lines.find(each => each.toLowerCase().startsWith(`${name}: `))?.slice(name.length + 2)
  const sent = {
    authorization: valueOf('authorization'),
    idempotencyKey: valueOf('idempotency-key'),
    body: rest.join('\r\n\r\n'),
  }
  judgeExchange(line.slice(0, 80), sent, answer)
  return answer
}

const writeAndRead = (baseUrl: string, bytes: Buffer | string): Promise<ApiAnswer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(baseUrl)
    const chunks: Buffer[] = []
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes))
    socket.setTimeout(20_000, () => socket.destroy(new Error('No answer, and not closed either')))
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.once('error', reject)
    socket.once('close', () => {
      const [head = '', ...rest] = Buffer.concat(chunks).toString().split('\r\n\r\n')
      const [line = '', ...lines] = head.split('\r\n')
      const headers = new Headers(lines.map(each => each.split(/: (.*)/s).slice(0, 2) as [string, string]))
      const text = rest.join('\r\n\r\n')
      resolve({ status: Number(line.split(' ')[1] ?? 0), headers, text, body: parsed(text) })
    })
  })

/** Lets go of kept connections. */
export const closeRawConnections = (): void => agent.destroy()
