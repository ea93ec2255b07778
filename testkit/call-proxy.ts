/**
 * Stands between a process and an API server, signs in for it, and tells of every change that was made before the process hears of
 * it: whoever kills the process then leaves the world changed and nobody the wiser.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import { clusterAccess } from '../runtime/kubernetes/cluster-access.ts'

/** A call that changes something and was answered. */
export interface ProxiedChange {
  readonly method: string
  readonly path: string
  readonly status: number
}

export interface CallProxy {
  /** Where the API server is met without signing in; loopback only. */
  readonly url: string
  /** The changes so far; leases and events are none. */
  readonly changes: readonly ProxiedChange[]
  /** Counts anew, and calls back once with the n-th change, whose answer never arrives. */
  stopAfter(count: number, onChange: () => void): void
  /** Counts anew, and lets everything through. */
  watch(): void
  close(): Promise<void>
}

const QUIET = /\/(leases|events)(\/|\?|$)/
const DROPPED = new Set([
  'host',
  'connection',
  'keep-alive',
  'authorization',
  'content-length',
  'transfer-encoding',
  'accept-encoding',
])
const ANSWERED = ['content-type', 'retry-after']

export const startCallProxy = async (kubeconfig: string): Promise<CallProxy> => {
  const access = await clusterAccess(kubeconfig)
  const { tls, headers: signedIn } = await access.signIn()
  const pool = new Pool(access.origin, {
    connections: 200,
    allowH2: false,
    bodyTimeout: 0,
    headersTimeout: 0,
    connect: { ...tls },
  })
  let changes: ProxiedChange[] = []
  let last: { readonly count: number; readonly onChange: () => void } | undefined

  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url: path = '/' } = request
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(([name, value]) => !DROPPED.has(name) && value !== undefined),
    )
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const isChange = method !== 'GET' && !QUIET.test(path)
    const answer = await pool.request({
      method,
      path,
      headers: { ...headers, ...signedIn },
      body: chunks.length === 0 ? null : Buffer.concat(chunks),
      // A change that was asked for happens, whoever has died meanwhile.
      ...(isChange ? {} : { signal: gone.signal }),
    })
    const answeredWith = Object.fromEntries(
      ANSWERED.flatMap(name => (answer.headers[name] === undefined ? [] : [[name, String(answer.headers[name])]])),
    ) as Record<string, string>
    if (isChange) {
      const body = Buffer.from(await answer.body.arrayBuffer())
      changes.push({ method, path, status: answer.statusCode })
      if (last !== undefined && changes.length >= last.count) {
        last.onChange()
        request.socket.destroy()
        return
      }
      response.writeHead(answer.statusCode, answeredWith).end(body)
      return
    }
    response.writeHead(answer.statusCode, answeredWith)
    response.flushHeaders()
    for await (const chunk of answer.body) if (!response.write(chunk)) await once(response, 'drain', gone)
    response.end()
  }
  const server = createServer((request, response) => {
    forward(request, response).catch(() => request.socket.destroy())
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get changes() {
      return changes
    },
    stopAfter: (count, onChange) => {
      changes = []
      last = { count, onChange }
    },
    watch: () => {
      changes = []
      last = undefined
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await pool.destroy()
    },
  }
}
