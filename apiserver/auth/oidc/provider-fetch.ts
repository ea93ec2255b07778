/**
 * How identity providers are reached, whoever named them: https with its certificate proved, or http on this machine, with a
 * deadline, an end to what is read, and no redirects, which could lead anywhere.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import * as client from 'openid-client'
import { outgoingAgent } from '../../../runtime/config/authorities.ts'

const MAX_ANSWER_BYTES = 256 * 1024
/** Fetches from a provider; what openid-client calls. */
export type ProviderFetch = (url: string, options: client.CustomFetchOptions) => Promise<Response>

const bytesOf = (answer: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    answer.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_ANSWER_BYTES) answer.destroy(new Error('The identity provider answers without an end'))
      else chunks.push(chunk)
    })
    answer.on('end', () => resolve(Buffer.concat(chunks)))
    answer.on('error', reject)
    answer.on('aborted', () => reject(new Error('The identity provider’s answer broke off')))
  })

/** A URL that is not to be called. */
class ForbiddenUrlError extends Error {
  override readonly name = 'ForbiddenUrlError'
  readonly code = 'FORBIDDEN_URL'
}

const NO_BODY = new Set([101, 204, 205, 304])

const responseOf = async (answer: IncomingMessage): Promise<Response> => {
  const bytes = await bytesOf(answer)
  const status = answer.statusCode ?? 0
  if (status < 200) throw new Error(`The identity provider answered ${status}`)
  const headers = new Headers()
  for (const [name, values] of Object.entries(answer.headersDistinct))
    for (const value of values ?? []) headers.append(name, value)
  return new Response(NO_BODY.has(status) ? null : new Uint8Array(bytes), { status, headers })
}

const textOf = (body: client.CustomFetchOptions['body']): string | undefined => {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new Error('Nothing but forms is sent to an identity provider')
}

/**
 * Which URLs may be called at all is judged where they are called. This very function, since discovery looks for it by its
 * identity.
 */
// eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to stand out
export const letFetchJudge: (configuration: client.Configuration) => void = client.allowInsecureRequests

/** What of a failure may be told in logs: never an answer, which could hold what we sent. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return 'unknown'
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' && /^[A-Za-z0-9_]{1,64}$/.test(code) ? code : error.name
}

export interface ProviderFetchOptions {
  /** PEMs to trust; undefined: those of this machine. */
  readonly authorities: readonly string[] | undefined
  /** For a whole answer. */
  readonly deadlineMs: number
  /** Whether a URL may be called. */
  readonly mayCall: (url: URL) => boolean
  /** How names are resolved; undefined: as usual. */
  readonly lookup?: LookupFunction
  /** Whether connections wait for the next call; else each call has its own. */
  readonly keepAlive: boolean
}

export const providerFetch = (options: ProviderFetchOptions): ProviderFetch => {
  const { authorities, deadlineMs, mayCall, lookup, keepAlive } = options
  const secure = outgoingAgent(authorities, { keepAlive, maxSockets: 32 })
  const plain = new HttpAgent({ keepAlive, maxSockets: 32 })
  return async (text, { method, headers, body, signal }) => {
    const url = new URL(text)
    if (!mayCall(url))
      throw new ForbiddenUrlError(`An identity provider is not asked over ${url.protocol}//${url.host}`)
    const content = textOf(body)
    const deadline = AbortSignal.timeout(deadlineMs)
    const request = {
      ...(lookup && { lookup }),
      method,
      headers: {
        ...headers,
        ...(content === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(content)) }),
      },
      signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
    }
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent =
        url.protocol === 'https:'
          ? httpsRequest(url, { ...request, agent: secure() }, resolve)
          : httpRequest(url, { ...request, agent: plain }, resolve)
      sent.on('error', reject)
      sent.end(content)
    })
    return responseOf(answer)
  }
}
