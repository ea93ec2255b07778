/**
 * Where a call may go whose host a tenant named: to public addresses, and into networks that whoever runs this service allowed.
 * Names are resolved here, every address of a name is judged, and the connection is made to one that was: a name that answers
 * differently the next time leads nowhere else. Never where clouds tell machines their secrets.
 */
import { Resolver } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
/** Networks, parsed. */
export type Networks = readonly (readonly [Address, number])[]

/** Of link-local ones all; the others are addresses at which clouds serve metadata, one of them a public one. */
const NEVER: Networks = [
  '169.254.0.0/16',
  'fe80::/10',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
  '168.63.129.16/32',
  '100.100.100.200/32',
  '192.0.0.192/32',
].map(network => ipaddr.parseCIDR(network))
/** All that is given out of IPv6. */
const GLOBAL_IPV6: Networks = [ipaddr.parseCIDR('2000::/3')]

const isIn = (address: Address, networks: Networks): boolean =>
  networks.some(([network, bits]) => address.kind() === network.kind() && address.match([network, bits] as never))

const parsed = (text: string): Address | undefined => (ipaddr.isValid(text) ? ipaddr.process(text) : undefined)

/** Whether a call may go to an address. An IPv4 one that is written as an IPv6 one is the IPv4 one. */
export const isReachable = (text: string, allowed: Networks): boolean => {
  const address = parsed(text)
  if (address === undefined || isIn(address, NEVER)) return false
  if (isIn(address, allowed)) return true
  return address.range() === 'unicast' && (address.kind() === 'ipv4' || isIn(address, GLOBAL_IPV6))
}

/** Whether an address is this machine itself. */
export const isLoopback = (text: string): boolean => parsed(text)?.range() === 'loopback'

/** The address that a URL's host is, without brackets; undefined: it is a name. */
export const literalHost = ({ hostname }: URL): string | undefined => {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(bare) === 0 ? undefined : bare
}

/** Every address of a name. */
export type ResolveName = (name: string) => Promise<readonly string[]>

const QUERY_MS = 1500

/** Asks the name server. Not `lookup`, whose threads, four for all of a process, slow name servers could hold. */
const askNameServer: ResolveName = async name => {
  const resolver = new Resolver({ timeout: QUERY_MS, tries: 2 })
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  return answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
}

/** What a name that leads where it must not is refused with. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError'
  readonly code = 'UNREACHABLE_ADDRESS'
}

/** For sockets: resolves names, and refuses one with any address to which a call may not go. Literals pass it by: judge them before. */
export const reachableLookup =
  (allowed: Networks, resolve: ResolveName = askNameServer): LookupFunction =>
  (name, { all, family }, callback) => {
    const find = async () => {
      const addresses = await resolve(name)
      if (addresses.length === 0) throw new UnreachableError('The name has no address')
      if (!addresses.every(address => isReachable(address, allowed)))
        throw new UnreachableError('The name has an address that is not to be called')
      const known = addresses.map(address => ({ address, family: isIP(address) }))
      const wanted = family === 4 || family === 6 ? known.filter(each => each.family === family) : known
      const [first] = wanted
      if (first === undefined) throw new UnreachableError('The name has no address of the family')
      return { first, wanted }
    }
    find().then(
      ({ first, wanted }) => (all === true ? callback(null, wanted) : callback(null, first.address, first.family)),
      (error: unknown) => callback(error instanceof Error ? error : new UnreachableError(String(error)), ''),
    )
  }
