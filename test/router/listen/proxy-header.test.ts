import { describe, expect, test } from 'vitest'

import { readProxyHeader } from '../../../src/overlay/sockets/proxy-header.ts'
import { proxyHeader, rawProxyHeader } from '../../support/proxy-header.ts'

describe('A PROXY header', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['2001:db8::7', '2001:db8::7'],
    // The form of an address that a load balancer sends if it has one socket for both address
    // families.
    ['::ffff:192.0.2.7', '192.0.2.7'],
  ])('contains the client address %s', (host, shown) => {
    const header = proxyHeader(host, 40_000)
    const byteLength = header.length
    const expected = { kind: 'header', client: { host: shown, port: 40_000 }, byteLength }
    expect(readProxyHeader(header)).toEqual(expected)
    expect(readProxyHeader(Buffer.concat([header, Buffer.from('more')]))).toEqual(expected)
  })

  test('may contain extensions, which the parser ignores, up to a total size of 536 bytes', () => {
    const longest = proxyHeader('192.0.2.7', 1, Buffer.alloc(536 - 28, 0xff))
    expect(longest).toHaveLength(536)
    expect(readProxyHeader(longest)).toEqual({
      kind: 'header',
      client: { host: '192.0.2.7', port: 1 },
      byteLength: 536,
    })
    const longer = proxyHeader('192.0.2.7', 1, Buffer.alloc(537 - 28, 0xff))
    const reason = 'its PROXY header is too long'
    expect(readProxyHeader(longer.subarray(0, 16))).toEqual({ kind: 'refused', reason })
  })

  test.each([
    ['the command LOCAL', rawProxyHeader(0x20, 0x00, Buffer.alloc(0))],
    ['the command LOCAL with addresses', rawProxyHeader(0x20, 0x11, Buffer.alloc(12, 7))],
    ['unspecified addresses', rawProxyHeader(0x21, 0x00, Buffer.alloc(20))],
  ])('with %s marks a connection of the load balancer itself', (_, header) => {
    const byteLength = header.length
    expect(readProxyHeader(header)).toEqual({ kind: 'header', client: null, byteLength })
  })

  test('is incomplete until its last byte, and the parser returns how many bytes are still needed', () => {
    const header = proxyHeader('2001:db8::7', 40_000)
    for (let length = 0; length < header.length; length += 1) {
      expect(readProxyHeader(header.subarray(0, length))).toEqual({
        kind: 'incomplete',
        bytesNeeded: length < 16 ? 16 : header.length,
      })
    }
  })

  test.each([
    ['in fact TLS', Buffer.from([22, 3, 1, 2, 0]), 'it sent no PROXY header'],
    ['in fact HTTP', Buffer.from('POST / HTTP/1.1\r\n'), 'it sent no PROXY header'],
    [
      'of version 1',
      Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n'),
      'it sent version 1 of the PROXY protocol, and only version 2 is accepted',
    ],
    [
      'one with an unknown command',
      rawProxyHeader(0x22, 0x11, Buffer.alloc(12)),
      'its PROXY header has an unknown version or command',
    ],
    [
      'of version 3',
      rawProxyHeader(0x31, 0x11, Buffer.alloc(12)),
      'its PROXY header has an unknown version or command',
    ],
    ['for UDP', rawProxyHeader(0x21, 0x12, Buffer.alloc(12)), 'its PROXY header is not for TCP'],
    [
      'for a Unix socket',
      rawProxyHeader(0x21, 0x31, Buffer.alloc(216)),
      'its PROXY header is not for TCP',
    ],
    [
      'truncated within an address',
      rawProxyHeader(0x21, 0x21, Buffer.alloc(35)),
      'its PROXY header lacks the addresses',
    ],
  ])('is refused if it is %s', (_, bytes, reason) => {
    expect(readProxyHeader(bytes)).toEqual({ kind: 'refused', reason })
  })
})
