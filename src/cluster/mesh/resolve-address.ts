import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

import {
  lookUpHost,
  type LookupResult,
  failedLookup,
  type Resolution,
} from '../../lib/runtime/cached-resolver.ts'
import { formatHostPort, parseHostPort } from '../../lib/text/names.ts'

const TIMEOUT_MS = 1500

/**
 * Resolves the name in an address.
 * @param address host:port; a name may resolve to many addresses.
 * @param resolvers address:port of the DNS servers that are queried first; the system's resolver is
 * used if the list is empty or its servers return no address.
 * @returns host:port with IP addresses; empty when the name does not resolve at present.
 */
export async function resolveAddress(
  address: string,
  resolvers: readonly string[],
): Promise<readonly string[]> {
  const { addresses } = await resolveHostPort(address, async (host) => {
    if (isIP(host) !== 0) return { addresses: [host], fault: null }
    return { ...(await lookUpWithResolvers(host, resolvers)), fault: null }
  })
  return addresses
}

/**
 * Resolves a host:port.
 * @returns host:port with IP addresses, and the reason if the lookup failed.
 */
export async function resolveHostPort(
  address: string,
  resolve: (host: string) => Promise<Resolution>,
): Promise<Resolution> {
  const target = parseHostPort(address)
  if (target === null) return { addresses: [], fault: `${address} is no address` }
  const { host, port } = target
  const { addresses, fault } = await resolve(host)
  return { addresses: addresses.map((one) => formatHostPort({ host: one, port })), fault }
}

/**
 * Looks up the addresses of a host name.
 * @param resolvers address:port of the DNS servers that are queried first.
 */
export async function lookUpWithResolvers(
  host: string,
  resolvers: readonly string[],
): Promise<LookupResult> {
  const first = resolvers.length === 0 ? null : await askResolvers(host, resolvers)
  if (first !== null && first.addresses.length > 0) return first
  const second = await lookUpHost(host)
  // "Not found" from the system's resolver is not final, because only the given resolvers may know
  // the name. The lookup therefore counts as answered only if both have responded.
  const isAnswered = second.isAnswered && first?.isAnswered !== false
  return second.addresses.length > 0 ? second : { addresses: [], isAnswered }
}

async function askResolvers(host: string, resolvers: readonly string[]): Promise<LookupResult> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 })
  resolver.setServers(resolvers)
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  return {
    addresses: answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : [])),
    isAnswered: answers.every(
      (answer) => answer.status === 'fulfilled' || failedLookup(answer.reason).isAnswered,
    ),
  }
}
