import type { Random } from '../../lib/random.ts'
import { type HostPort, parseHostPort } from '../../lib/text/names.ts'
import { DnsUpstream, type UpstreamMode } from './dns-upstream.ts'
import type { TproxyInterceptorDeps } from './tproxy-interceptor.ts'
import { runIpCommand } from './local-route-manager.ts'
import { runNftScript } from './port-redirector.ts'
import type { NameServerDeps } from './name-server.ts'
import { parseCidr } from '../../lib/text/networks.ts'

const DNS_PORT = 53
const RESOLVER_FILE = '/etc/resolv.conf'

/** Converts the options of a `tunnel` listener in mode `tproxy`, after they were checked. */
export function interceptOptions(
  options: Readonly<Record<string, unknown>>,
  random: Random,
): Pick<
  TproxyInterceptorDeps,
  'namesRange' | 'nameServers' | 'interfaces' | 'runIp' | 'runNft' | 'resolverFile'
> {
  const namesRange = parseCidr(String(options['dnsSvcIpRange']))
  if (namesRange === null) throw new Error('options.dnsSvcIpRange was checked and is no network')
  const servers = textsOf(options['dnsUpstream']).flatMap((text) => serverAt(text) ?? [])
  const upstream =
    servers.length === 0
      ? null
      : new DnsUpstream(servers, options['dnsUpstreamMode'] as UpstreamMode, random)
  const unanswerable = options['dnsUnanswerable'] as NameServerDeps['unanswerable']
  return {
    namesRange,
    nameServers: textsOf(options['resolver'])
      .flatMap((text) => serverAt(text) ?? [])
      .map((bind) => ({ bind, upstream, unanswerable })),
    interfaces: textsOf(options['lanIf']),
    runIp: runIpCommand,
    runNft: runNftScript,
    resolverFile: RESOLVER_FILE,
  }
}

/** @param text `udp://address:port`, or an address with or without a port. */
function serverAt(text: string): HostPort | null {
  const place = text.replace(/^udp:\/\//, '')
  return parseHostPort(place) ?? parseHostPort(`${place}:${DNS_PORT}`)
}

function textsOf(value: unknown): readonly string[] {
  return (value ?? []) as readonly string[]
}
