/**
 * Stands between a process of ours and a real API server, on plain HTTP, and does to calls what networks and servers do.
 * Signs in to the API server as the kubeconfig says, unless a call brings a token of its own.
 *
 *   const proxy = await startFaultProxy(kubeconfig)
 *   openKubernetesApi({ …, kubeconfig: proxy.kubeconfig })
 *   proxy.inject(({ verb, resource }) => verb === 'watch' && resource === 'pods', { watch: { kind: 'gone', after: 3 } })
 *   proxy.onAnswer(({ mutation }) => mutation === 7, async () => { child.kill('SIGKILL'); return 'drop' })
 */
import { rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent, request } from 'node:https'
import type { Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { clusterAccess } from '../../runtime/kubernetes/cluster-access.ts'
import { resourceOf } from '../../runtime/kubernetes/object-path.ts'
import { freePorts } from '../free-port.ts'
import { newTemporaryFolder } from '../test-folder.ts'
import { faultyWatch, type WatchFault } from './watch-faults.ts'

/** One call, as rules see it. */
export interface Exchange {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'
  readonly resource: string
  readonly userAgent: string
  /** When it came, in milliseconds of the epoch. */
  readonly at: number
  /** Counts all calls, from 1. */
  readonly number: number
  /** Counts the calls that change something, leases left out, from 1; undefined for the others. */
  readonly mutation: number | undefined
}

/** What becomes of a call. */
export type Fault =
  /** The connection breaks before the API server hears of the call. */
  | { readonly before: 'reset' }
  /** No answer ever; the API server does not hear of the call. */
  | { readonly before: 'half-open' }
  /** The API server does it, and its answer is lost. */
  | { readonly after: 'reset' }
  | { readonly answer: number; readonly reason?: string; readonly retryAfterSeconds?: number }
  | { readonly delayMs: number }
  | { readonly watch: WatchFault }

type Match = (exchange: Exchange) => boolean

/** A fault in place. */
export interface Injection {
  /** How often it struck. */
  readonly count: number
  remove(): void
}

export interface FaultProxy {
  /** Path of a kubeconfig that leads here. */
  readonly kubeconfig: string
  /** How many connections were opened so far. */
  readonly connections: number
  /** How many of them are open. */
  readonly openConnections: number
  /** Every call so far. */
  readonly exchanges: readonly Exchange[]
  /** The first rule that matches strikes; `times`: so often at most. */
  inject(match: Match, fault: Fault, times?: number): Injection
  /** Calls back once the API server has answered, before anybody sees the answer; `drop` loses it. */
  onAnswer(match: Match, then: (exchange: Exchange) => Promise<'pass' | 'drop'>): Injection
  /** Refuses and breaks every connection, until `up`. */
  down(): Promise<void>
  up(): Promise<void>
  stop(): Promise<void>
}

interface Rule {
  readonly match: Match
  readonly fault?: Fault
  readonly then?: (exchange: Exchange) => Promise<'pass' | 'drop'>
  left: number
  count: number
}

const VERBS: Readonly<Record<string, Exchange['verb']>> = { POST: 'create', PUT: 'update', PATCH: 'patch' }

/** Whether a path ends in an object's name, or in a subresource of one. */
const namesOne = (path: string): boolean => {
  const parts = path.split('/').slice(path.startsWith('/api/') ? 3 : 4)
  return parts[0] === 'namespaces' && parts.length > 2 ? parts.length > 3 : parts.length > 1
}

const verbOf = (method: string, path: string, query: URLSearchParams): Exchange['verb'] => {
  if (method === 'GET') return query.get('watch') === 'true' ? 'watch' : namesOne(path) ? 'get' : 'list'
  if (method === 'DELETE') return namesOne(path) ? 'delete' : 'deletecollection'
  return VERBS[method] ?? 'get'
}

/** A proxy in front of a kubeconfig's API server. `mark` ends the User-Agent of what passes: by it audit logs tell who came this way. */
export const startFaultProxy = async (kubeconfig: string, { mark = '' } = {}): Promise<FaultProxy> => {
  const access = await clusterAccess(kubeconfig)
  const { tls } = await access.signIn()
  const signedIn = new Agent({ ...tls, keepAlive: true })
  const anonymous = new Agent({ ca: tls.ca, rejectUnauthorized: tls.rejectUnauthorized ?? true, keepAlive: true })
  const port = await freePorts()
  const rules: Rule[] = []
  const exchanges: Exchange[] = []
  const sockets = new Set<Socket>()
  let mutations = 0
  let connections = 0

  const described = ({ method = 'GET', url = '/', headers }: IncomingMessage): Exchange => {
    const { pathname: path, searchParams: query } = new URL(url, 'http://proxy')
    const resource = resourceOf(path)
    const mutation = method === 'GET' || resource === 'leases' ? undefined : ++mutations
    const userAgent = headers['user-agent'] ?? ''
    const verb = verbOf(method, path, query)
    const [at, number] = [Date.now(), exchanges.length + 1]
    const exchange = { method, path, query, verb, resource, userAgent, at, number, mutation }
    exchanges.push(exchange)
    return exchange
  }

  const struck = (exchange: Exchange, part: 'fault' | 'then'): Rule | undefined => {
    const rule = rules.find(one => one[part] !== undefined && one.left > 0 && one.match(exchange))
    if (rule !== undefined) {
      rule.left -= 1
      rule.count += 1
    }
    return rule
  }

  const forward = async (
    incoming: IncomingMessage,
    exchange: Exchange,
    fault: Fault | undefined,
    outgoing: ServerResponse,
  ) => {
    const { host: _, ...headers } = incoming.headers
    const { headers: own } = await access.signIn()
    const agent = headers.authorization === undefined ? signedIn : anonymous
    const upstream = request(`${access.origin}${access.prefix}${incoming.url ?? '/'}`, {
      agent,
      method: exchange.method,
      headers: { ...own, ...headers, 'user-agent': `${exchange.userAgent} ${mark}`.trim() },
    })
    outgoing.on('close', () => upstream.destroy())
    upstream.on('error', () => outgoing.destroy())
    incoming.pipe(upstream)
    upstream.on('response', answer => {
      answer.on('error', () => outgoing.destroy())
      void pass(answer, exchange, fault, outgoing).catch(() => outgoing.destroy())
    })
  }

  const pass = async (
    answer: IncomingMessage,
    exchange: Exchange,
    fault: Fault | undefined,
    outgoing: ServerResponse,
  ) => {
    const rule = struck(exchange, 'then')
    if (rule?.then !== undefined && (await rule.then(exchange)) === 'drop') {
      reset(outgoing)
      return
    }
    if (fault !== undefined && 'after' in fault) {
      reset(outgoing)
      return
    }
    const { connection: _, 'transfer-encoding': __, ...headers } = answer.headers
    outgoing.writeHead(answer.statusCode ?? 502, headers)
    // A quiet watch has begun, too.
    outgoing.flushHeaders()
    if (fault === undefined || !('watch' in fault)) answer.pipe(outgoing)
    else {
      const sink = {
        write: (bytes: Buffer | string) => outgoing.write(bytes),
        end: () => outgoing.end(),
        reset: () => reset(outgoing),
      }
      answer.on('data', faultyWatch(fault.watch, sink))
      if (fault.watch.kind !== 'half-open') answer.on('end', () => outgoing.end())
    }
  }

  const server = createServer((incoming, outgoing) => {
    outgoing.on('error', () => undefined)
    const exchange = described(incoming)
    const fault = struck(exchange, 'fault')?.fault
    if (fault !== undefined && 'before' in fault) {
      if (fault.before === 'reset') reset(outgoing)
      return
    }
    if (fault !== undefined && 'answer' in fault) {
      refuse(incoming, fault, outgoing)
      return
    }
    const go = (): void => void forward(incoming, exchange, fault, outgoing).catch(() => outgoing.destroy())
    if (fault !== undefined && 'delayMs' in fault) setTimeout(go, fault.delayMs)
    else go()
  })
  server.keepAliveTimeout = 60_000
  server.requestTimeout = 0
  server.on('connection', socket => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
  })
  const up = (): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject)
        resolve()
      })
    })
  const down = (): Promise<void> =>
    new Promise(resolve => {
      server.close(() => resolve())
      for (const socket of sockets) socket.resetAndDestroy()
    })
  const add = (rule: Rule): Injection => {
    rules.push(rule)
    return {
      get count() {
        return rule.count
      },
      remove: () => void (rule.left = 0),
    }
  }
  await up()
  const path = kubeconfigFor(port)
  return {
    kubeconfig: path,
    get connections() {
      return connections
    },
    get openConnections() {
      return sockets.size
    },
    exchanges,
    inject: (match, fault, times = Infinity) => add({ match, fault, left: times, count: 0 }),
    onAnswer: (match, then) => add({ match, then, left: Infinity, count: 0 }),
    down,
    up,
    stop: async () => {
      await down()
      signedIn.destroy()
      anonymous.destroy()
      rmSync(dirname(path), { recursive: true, force: true })
    },
  }
}

const reset = (outgoing: ServerResponse): void => void outgoing.socket?.resetAndDestroy()

const refuse = (
  incoming: IncomingMessage,
  { answer, reason, retryAfterSeconds }: Extract<Fault, { answer: number }>,
  outgoing: ServerResponse,
): void => {
  incoming.resume()
  outgoing.writeHead(answer, {
    'content-type': 'application/json',
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
  })
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'injected',
    reason,
    code: answer,
  }
  outgoing.end(JSON.stringify(status))
}

const kubeconfigFor = (port: number): string => {
  const path = join(newTemporaryFolder(), 'kubeconfig')
  // The client refuses plain HTTP unless it is told that it may trust anybody.
  const cluster = { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'proxy',
    clusters: [{ name: 'proxy', cluster }],
    users: [{ name: 'proxy', user: {} }],
    contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: 'proxy' } }],
  }
  writeFileSync(path, JSON.stringify(config))
  return path
}
