import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

import { formatHostPort, parseHostPort } from '../../lib/text/names.ts'

const TIMEOUT_MS = 1500

/**
 * @param address host:port; a name may resolve to many addresses.
 * @param resolvers address:port of the DNS servers to ask first; the system's resolver is used if
 * there are none or they do not know the name.
 * @returns host:port with IP addresses; empty when the name does not resolve now.
 */
export async function resolveAddress(
  address: string,
  resolvers: readonly string[],
): Promise<readonly string[]> {
  const target = parseHostPort(address)
  if (target === null) return []
  const { host, port } = target
  const hosts = isIP(host) === 0 ? await addressesOf(host, resolvers) : [host]
  return hosts.map((one) => formatHostPort({ host: one, port }))
}

async function addressesOf(host: string, resolvers: readonly string[]): Promise<string[]> {
  const resolved = resolvers.length === 0 ? [] : await askResolvers(host, resolvers)
  if (resolved.length > 0) return resolved
  const found = await lookup(host, { all: true }).catch(() => [])
  return found.map(({ address }) => address)
}

async function askResolvers(host: string, resolvers: readonly string[]): Promise<string[]> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 })
  resolver.setServers(resolvers)
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
}
