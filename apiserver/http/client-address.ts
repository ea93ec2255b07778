/** Which address a request comes from, believing forwarded headers from trusted proxies only. */
import ipaddr from 'ipaddr.js'
import type { TrustedNetworks } from '../config/trusted-networks.ts'

const isTrusted = (address: ipaddr.IPv4 | ipaddr.IPv6, networks: TrustedNetworks): boolean =>
  networks.some(([network, bits]) => address.kind() === network.kind() && address.match([network, bits] as never))

/** The address of a hop without zone, brackets or port; `::ffff:1.2.3.4` in both notations is 1.2.3.4. */
const parseHop = (text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined => {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? text.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined
}

/**
 * The client's address: the peer, or, while the hop is a trusted proxy, the next one to the left in X-Forwarded-For.
 * A hop that is no address ends the walk at the last one that is.
 */
export const clientAddress = (
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: TrustedNetworks,
): string => {
  if (peer === undefined) return 'unknown'
  if (!peer.includes(':') && trusted.length === 0) return peer
  let address = parseHop(peer)
  if (address === undefined) return 'unknown'
  const hops = trusted.length === 0 || forwardedFor === undefined ? [] : forwardedFor.split(',')
  while (hops.length > 0 && isTrusted(address, trusted)) {
    const next = parseHop(hops.pop()?.trim() ?? '')
    if (next === undefined) break
    address = next
  }
  return address.toString()
}

/** What limits count by: an IPv4 address, or the /64 of an IPv6 one, since a single host has as many as it likes in there. */
export const limitKey = (address: string): string => {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address
  return `${ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':')}/64`
}
