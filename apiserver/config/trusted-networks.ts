import ipaddr from 'ipaddr.js'

/** Networks that a setting names, parsed once. */
export type TrustedNetworks = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][]

/** @throws Error when one is no CIDR and no address */
export const parseNetworks = (networks: readonly string[]): TrustedNetworks =>
  networks.map(network => {
    if (network.includes('/')) return ipaddr.parseCIDR(network)
    const address = ipaddr.parse(network)
    return [address, address.kind() === 'ipv4' ? 32 : 128]
  })
