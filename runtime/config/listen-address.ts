import { z } from 'zod'
import { ConfigError } from './parse-env.ts'

/** Where something listens. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** A variable that holds an address and a port; an IPv6 address stands in brackets. */
export const hostAndPort = z
  .string()
  .regex(/^(\[[0-9a-fA-F:.]+\]|[^:[\]]+):\d{1,5}$/, 'must be an address and a port, e.g. 127.0.0.1:8080')

/** What a `hostAndPort` says. `name` is its variable's. @throws ConfigError when there is no such port */
export const listenAddress = (name: string, text: string): ListenAddress => {
  const at = text.lastIndexOf(':')
  const port = Number(text.slice(at + 1))
  if (port > 65_535) throw new ConfigError(`Cannot use ${name}: port ${port} is above 65535`)
  return { host: text.slice(0, at).replaceAll(/[[\]]/g, ''), port }
}
