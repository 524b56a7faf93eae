import { describe, expect, test } from 'vitest'

import { readAppData } from '../../../src/overlay/services/app-data.ts'
import { parseHostConfig } from '../../../src/overlay/services/host-config.ts'
import {
  type HostTarget,
  resolveTarget,
  chooseHostTarget,
} from '../../../src/overlay/services/host-target.ts'
import { parseIp } from '../../../src/lib/text/ip-address.ts'
import { createIpNetwork, translateAddress } from '../../../src/lib/text/networks.ts'

// Goal: a client of a hosted service reaches only the targets that the operator has listed.

type Data = Readonly<Record<string, unknown>>

const forwarding = {
  forwardProtocol: true,
  allowedProtocols: ['tcp', 'udp'],
  forwardAddress: true,
  allowedAddresses: ['10.1.0.0/16', '192.168.7.7', 'db.example', '*.corp.example', 'fd00:1::/64'],
  forwardPort: true,
  allowedPortRanges: [
    { low: 80, high: 90 },
    { low: 443, high: 443 },
  ],
}
const ask = { dst_protocol: 'tcp', dst_ip: '10.1.2.3', dst_port: '80' }

function target(data: Data, config: object = forwarding): HostTarget {
  const [terms] = parseHostConfig('host.v1', JSON.stringify(config))
  if (terms === undefined) throw new Error('no terms')
  return chooseHostTarget(terms, readAppData(Buffer.from(JSON.stringify(data))))
}

describe('A host.v1 config whose clients may choose the target', () => {
  test.each<[string, Data, string]>([
    ['an address in an allowed network', ask, 'tcp 10.1.2.3 80'],
    ['an allowed address', { ...ask, dst_ip: '192.168.7.7' }, 'tcp 192.168.7.7 80'],
    ['an allowed name', { ...ask, dst_hostname: 'db.example' }, 'tcp db.example 80'],
    ['an allowed name in capitals', { ...ask, dst_hostname: 'DB.Example.' }, 'tcp db.example 80'],
    [
      'a name below an allowed domain',
      { ...ask, dst_hostname: 'a.b.corp.example' },
      'tcp a.b.corp.example 80',
    ],
    ['an allowed domain itself', { ...ask, dst_hostname: 'corp.example' }, 'tcp corp.example 80'],
    ['the last port of an allowed range', { ...ask, dst_port: '90' }, 'tcp 10.1.2.3 90'],
    ['the other allowed protocol', { ...ask, dst_protocol: 'udp' }, 'udp 10.1.2.3 80'],
    ['an allowed IPv6 address', { ...ask, dst_ip: 'FD00:1::0:7' }, 'tcp fd00:1::7 80'],
    [
      'an allowed address as an IPv4-mapped IPv6 address',
      { ...ask, dst_ip: '::ffff:10.1.2.3' },
      'tcp 10.1.2.3 80',
    ],
  ])('lets a client reach %s', (_what, data, expected) => {
    const { protocol, host, port } = target(data)
    expect(`${protocol} ${host} ${port}`).toBe(expected)
  })

  test.each<[string, Data]>([
    ['an address outside of the allowed networks', { ...ask, dst_ip: '10.2.0.1' }],
    ['this host', { ...ask, dst_ip: '127.0.0.1' }],
    ['this host as an IPv4-mapped IPv6 address', { ...ask, dst_ip: '::ffff:127.0.0.1' }],
    [
      'this host as an IPv4-mapped IPv6 address in hexadecimal',
      { ...ask, dst_ip: '::ffff:7f00:1' },
    ],
    ['this host in a legacy notation', { ...ask, dst_ip: '127.1' }],
    ['this host as a decimal number', { ...ask, dst_ip: '2130706433' }],
    ['the unspecified address', { ...ask, dst_ip: '0.0.0.0' }],
    ['an address with a zone id', { ...ask, dst_ip: 'fd00:1::1%lo' }],
    ['an address that contains a port', { ...ask, dst_ip: '10.1.2.3:22' }],
    ['a name instead of an address', { ...ask, dst_ip: 'db.example' }],
    ['an address instead of a name', { ...ask, dst_hostname: '10.1.2.3' }],
    [
      'a name that contains an allowed domain, but is below another one',
      { ...ask, dst_hostname: 'corp.example.evil.test' },
    ],
    [
      'a name that ends with the same letters as an allowed domain',
      { ...ask, dst_hostname: 'evilcorp.example' },
    ],
    ['a name with a wildcard', { ...ask, dst_hostname: '*.corp.example' }],
    ['a name with a blank', { ...ask, dst_hostname: 'a .corp.example' }],
    ['a name with a port', { ...ask, dst_hostname: 'db.example:22' }],
    [
      'a name that is not allowed, together with an allowed address',
      { ...ask, dst_hostname: 'x.test' },
    ],
    ['a target without an address', { dst_protocol: 'tcp', dst_port: '80' }],
    ['a target without a port', { ...ask, dst_port: undefined }],
    ['a port outside of the allowed ranges', { ...ask, dst_port: '91' }],
    [
      'a port above 65,535 that would wrap around to an allowed port',
      { ...ask, dst_port: String(65_536 + 80) },
    ],
    ['a port with a sign', { ...ask, dst_port: '+80' }],
    ['a port with a blank', { ...ask, dst_port: ' 80' }],
    ['a port with a fraction', { ...ask, dst_port: '80.0' }],
    ['a port that is not a string', { ...ask, dst_port: 80 }],
    ['port 0', { ...ask, dst_port: '0' }],
    ['a protocol in capitals', { ...ask, dst_protocol: 'TCP' }],
    ['a protocol with the name of an inherited property', { ...ask, dst_protocol: 'constructor' }],
    ['a target without a protocol', { ...ask, dst_protocol: undefined }],
    ['a target with a source address', { ...ask, source_addr: '10.1.9.9' }],
    ['the DNS resolver of the host', { ...ask, connType: 'resolver' }],
  ])('does not let a client reach %s', (_what, data) => {
    expect(() => target(data)).toThrow()
  })

  test('ignores the target that a client requests if the config fixes the target', () => {
    const fixed = { protocol: 'tcp', address: 'web.example', port: 8080 }
    const asked = { ...ask, dst_hostname: 'evil.test', dst_port: '22', dst_protocol: 'udp' }
    expect(target(asked, fixed)).toEqual({
      protocol: 'tcp',
      host: 'web.example',
      port: 8080,
      isReachable: null,
    })
  })

  test('translates the address by the rule with the longest prefix', () => {
    const config = {
      ...forwarding,
      forwardAddressTranslations: [
        { from: '10.1.0.0', to: '172.16.0.0', prefixLength: 16 },
        { from: '10.1.2.3', to: '172.31.9.9', prefixLength: 32 },
      ],
    }
    expect(target(ask, config).host).toBe('172.31.9.9')
    expect(target({ ...ask, dst_ip: '10.1.2.4' }, config).host).toBe('172.16.2.4')
    expect(target({ ...ask, dst_ip: '192.168.7.7' }, config).host).toBe('192.168.7.7')
  })
})

test.each([
  ['192.168.10.3', '192.168.0.0', '10.0.1.0', 16, '10.0.10.3'],
  ['192.168.10.3', '192.168.0.0', '10.0.1.0', 24, null],
  ['10.0.0.255', '10.0.0.128', '10.9.9.0', 25, '10.9.9.127'],
  ['fd00::1:2', 'fd00::', 'fd11:2::', 64, 'fd11:2::1:2'],
  ['1.2.3.4', '0.0.0.0', '9.9.9.9', 0, '1.2.3.4'],
  ['1.2.3.4', '::', '::', 0, null],
])(
  'the address translation of %s, from %s to %s with a prefix of %i bits, results in %s',
  (address, from, to, prefix, expected) => {
    const [ip, source, aim] = [
      parseIp(address),
      createIpNetwork(from, prefix),
      createIpNetwork(to, prefix),
    ]
    if (ip === null || source === null || aim === null) throw new Error('no address')
    expect(translateAddress(ip, source, aim)?.text ?? null).toBe(expected)
  },
)

test.each<[string, Uint8Array]>([
  ['not JSON', Buffer.from('{')],
  ['a JSON list', Buffer.from('[]')],
  ['null', Buffer.from('null')],
  ['not UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
  ['too long', Buffer.from(JSON.stringify({ x: 'x'.repeat(5000) }))],
])('a dial is refused if its application data is %s', (_what, bytes) => {
  expect(() => readAppData(bytes)).toThrow('application data')
})

describe('A host name that a client chooses as its target', () => {
  const named = (dst_hostname: string, allowedAddresses: readonly string[]) =>
    target({ ...ask, dst_hostname }, { ...forwarding, allowedAddresses })

  test('that matches only an allowed domain cannot lead to this host unless the address of this host is also allowed', async () => {
    const resolved = (allowed: readonly string[]) =>
      resolveTarget({ ...named('a.example', ['*.example', ...allowed]), host: 'localhost' })
    await expect(resolved([])).rejects.toThrow('an address that is not allowed')
    expect(await resolved(['127.0.0.0/8'])).toBe('127.0.0.1')
  })

  test('may lead to any address if the operator has allowed exactly this name', async () => {
    expect(['127.0.0.1', '::1']).toContain(await resolveTarget(named('localhost', ['localhost'])))
  })
})

describe('A config for hosting a service', () => {
  const host = { protocol: 'tcp', address: 'a.example', port: 80 }
  const fault = (config: unknown, type: 'host.v1' | 'host.v2' = 'host.v1') => {
    try {
      parseHostConfig(type, JSON.stringify(config))
      return ''
    } catch (error) {
      return error instanceof Error ? error.message : ''
    }
  }

  test.each<[string, unknown, string]>([
    ['is not an object', [], 'host.v1 is no JSON object'],
    ['has no protocol', { ...host, protocol: undefined }, 'protocol is missing'],
    ['has an unsupported protocol', { ...host, protocol: 'sctp' }, 'neither tcp nor udp'],
    ['has no port', { ...host, port: undefined }, 'port is missing'],
    ['has a port that is a string', { ...host, port: '80' }, 'port is no integer'],
    [
      'has an empty list of allowed addresses',
      { ...forwarding, allowedAddresses: [] },
      'allowedAddresses is missing or empty',
    ],
    [
      'has no list of allowed ports',
      { ...forwarding, allowedPortRanges: undefined },
      'allowedPortRanges is missing',
    ],
    [
      'has an empty list of allowed protocols',
      { ...forwarding, allowedProtocols: [] },
      'allowedProtocols is missing',
    ],
    [
      'has allowed source addresses',
      { ...host, allowedSourceAddresses: ['10.0.0.0/8'] },
      'allowedSourceAddresses is not supported',
    ],
    [
      'has a proxy of an unsupported type',
      { ...host, proxy: { type: 'socks5', address: 'p:1' } },
      'socks5 is not supported',
    ],
    [
      'has an invalid health check action',
      {
        ...host,
        portChecks: [
          {
            address: 'a:1',
            interval: '1s',
            timeout: '1s',
            actions: [{ trigger: 'fail', action: 'increase cost' }],
          },
        ],
      },
      'is no action',
    ],
    [
      'has a port check whose address has no port',
      { ...host, portChecks: [{ address: 'a', interval: '1s', timeout: '1s' }] },
      'is no <host>:<port>',
    ],
    [
      'has an HTTP check of a file URL',
      { ...host, httpChecks: [{ url: 'file:///etc/passwd', interval: '1s', timeout: '1s' }] },
      'is no HTTP URL',
    ],
  ])('is refused if it %s', (_what, config, expected) => {
    expect(fault(config)).toContain(expected)
  })

  test('with several terminators is read completely, and an error names the faulty terminator', () => {
    const both = {
      terminators: [
        host,
        {
          ...host,
          port: 81,
          listenOptions: { cost: 7, precedence: 'required', connectTimeout: '2s' },
        },
      ],
    }
    const [, second] = parseHostConfig('host.v2', JSON.stringify(both))
    expect(second).toMatchObject({
      port: 81,
      cost: 7,
      precedence: 'required',
      connectTimeoutMs: 2000,
    })
    expect(fault({ terminators: [host, { ...host, port: 0 }] }, 'host.v2')).toContain(
      'terminators[1].port',
    )
  })

  test('of the older type contains the host name in a differently named field', () => {
    const older = { protocol: 'udp', hostname: 'a.example', port: 53 }
    const [terms] = parseHostConfig('ziti-tunneler-server.v1', JSON.stringify(older))
    expect(terms).toMatchObject({ protocol: 'udp', address: 'a.example', port: 53 })
  })
})
