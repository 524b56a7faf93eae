import { isIPv6 } from 'node:net'

import { ipv6Groups } from '../../src/lib/text/ip-address.ts'

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]

/** A header of PROXY protocol version 2 with any content. */
export function rawProxyHeader(command: number, family: number, content: Uint8Array): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(content.length)
  return Buffer.concat([Buffer.from([...SIGNATURE, command, family]), length, content])
}

/**
 * The header of a load balancer for a client.
 * @param extensions bytes after the addresses (TLVs).
 */
export function proxyHeader(host: string, port: number, extensions = Buffer.alloc(0)): Buffer {
  const isV6 = isIPv6(host)
  const address = isV6
    ? Buffer.from(ipv6Groups(host).flatMap((group) => [group >> 8, group & 255]))
    : Buffer.from(host.split('.').map(Number))
  const ports = Buffer.alloc(4)
  ports.writeUInt16BE(port)
  ports.writeUInt16BE(443, 2)
  // The destination address, which the reader ignores.
  const content = Buffer.concat([address, Buffer.alloc(address.length), ports, extensions])
  return rawProxyHeader(0x21, isV6 ? 0x21 : 0x11, content)
}
