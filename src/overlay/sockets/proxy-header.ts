import { ipv4FromGroups, parseIp } from '../../lib/text/ip-address.ts'
import type { HostPort } from '../../lib/text/names.ts'
import { socketLimits } from './limits.ts'

/**
 * The start of a connection from a load balancer, in version 2 of the PROXY protocol (haproxy.org,
 * proxy-protocol.txt, 2.2).
 */
type ReadProxyHeader =
  | { readonly kind: 'incomplete'; readonly bytesNeeded: number }
  /**
   * `client` is null if the load balancer connects for itself, as for its health checks, or sends
   * no client address.
   */
  | { readonly kind: 'header'; readonly client: HostPort | null; readonly byteLength: number }
  | { readonly kind: 'refused'; readonly reason: string }

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const SIGNATURE_V1 = Buffer.from('PROXY ', 'latin1')
const FIXED_BYTES = 16

const commands = { local: 0x20, proxy: 0x21 } as const
/** Codes for address family and transport protocol. */
const families = { unspecified: 0x00, tcpOverIpv4: 0x11, tcpOverIpv6: 0x21 } as const
/** Bytes of the two addresses and two ports. */
const addressBytes = { [families.tcpOverIpv4]: 12, [families.tcpOverIpv6]: 36 } as const

/** Reads the header at the start of the bytes, and nothing after it. */
export function readProxyHeader(bytes: Buffer): ReadProxyHeader {
  const first = bytes.subarray(0, SIGNATURE.length)
  if (!first.equals(SIGNATURE.subarray(0, first.length))) return refused(otherProtocol(bytes))
  if (bytes.length < FIXED_BYTES) return { kind: 'incomplete', bytesNeeded: FIXED_BYTES }
  const byteLength = FIXED_BYTES + bytes.readUInt16BE(14)
  // @guard client-address-of-a-stranger--size
  if (byteLength > socketLimits.proxyHeaderBytesMax) return refused('its PROXY header is too long')
  if (bytes.length < byteLength) return { kind: 'incomplete', bytesNeeded: byteLength }
  const [command, family] = [bytes.readUInt8(12), bytes.readUInt8(13)]
  if (command === commands.local) return { kind: 'header', client: null, byteLength }
  if (command !== commands.proxy)
    return refused('its PROXY header has an unknown version or command')
  if (family === families.unspecified) return { kind: 'header', client: null, byteLength }
  if (family !== families.tcpOverIpv4 && family !== families.tcpOverIpv6) {
    return refused('its PROXY header is not for TCP')
  }
  if (byteLength < FIXED_BYTES + addressBytes[family]) {
    return refused('its PROXY header lacks the addresses')
  }
  return { kind: 'header', client: clientIn(bytes.subarray(FIXED_BYTES), family), byteLength }
}

function refused(reason: string): ReadProxyHeader {
  return { kind: 'refused', reason }
}

function otherProtocol(bytes: Buffer): string {
  const first = bytes.subarray(0, SIGNATURE_V1.length)
  return first.equals(SIGNATURE_V1.subarray(0, first.length))
    ? 'it sent version 1 of the PROXY protocol, and only version 2 is accepted'
    : 'it sent no PROXY header'
}

function clientIn(addresses: Buffer, family: keyof typeof addressBytes): HostPort {
  if (family === families.tcpOverIpv4) {
    const host = ipv4FromGroups(addresses.readUInt16BE(0), addresses.readUInt16BE(2))
    return { host, port: addresses.readUInt16BE(8) }
  }
  const groups = Array.from({ length: 8 }, (_, at) => addresses.readUInt16BE(2 * at).toString(16))
  // Converts an IPv4-mapped IPv6 address to IPv4: otherwise the same client would count as two
  // sources.
  const host = parseIp(groups.join(':'))?.text ?? ''
  return { host, port: addresses.readUInt16BE(32) }
}
