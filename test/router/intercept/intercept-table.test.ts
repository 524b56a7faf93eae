import { describe, expect, test } from 'vitest'

import type { Clock } from '../../../src/lib/clock.ts'
import {
  type InterceptConfigType,
  parseInterceptConfig,
} from '../../../src/overlay/intercept/intercept-config.ts'
import { InterceptTable } from '../../../src/overlay/intercept/intercept-table.ts'
import { ListeningPlan } from '../../../src/overlay/intercept/listening-plan.ts'
import { ServiceNames } from '../../../src/overlay/intercept/service-names.ts'
import { interceptLimits } from '../../../src/overlay/intercept/limits.ts'
import { parseIp } from '../../../src/lib/text/ip-address.ts'
import { parseCidr } from '../../../src/lib/text/networks.ts'

// Goal: a config of a service is read as it is meant, or refused; of several services the most exact gets a connection; names keep
// their addresses.

const config = (addresses: readonly string[], more: object = {}) => ({
  protocols: ['tcp'],
  addresses,
  portRanges: [{ low: 80, high: 80 }],
  ...more,
})

const termsOf = (value: unknown, type: InterceptConfigType = 'intercept.v1') =>
  parseInterceptConfig(type, JSON.stringify(value))

const interceptOf = (serviceId: string, value: unknown) => ({
  serviceId,
  service: `name of ${serviceId}`,
  terms: termsOf(value),
})

const addressOf = (text: string) => {
  const address = parseIp(text)
  if (address === null) throw new Error('no address')
  return address
}

describe('A config of a service', () => {
  test('lists addresses, networks, names and domains, with ports and how to dial', () => {
    const terms = termsOf(
      config(['10.1.2.3', '10.0.0.0/8', 'fd00::/64', 'DB.Example.', '*.corp.example'], {
        protocols: ['tcp', 'udp'],
        portRanges: [{ low: 1, high: 9 }],
        dialOptions: { connectTimeoutSeconds: 7, identity: '$dst_hostname' },
        sourceIp: '$src_ip',
      }),
    )
    expect(terms.networks.map(({ address, prefix }) => `${address.text}/${prefix}`)).toEqual([
      '10.1.2.3/32',
      '10.0.0.0/8',
      'fd00::/64',
    ])
    expect([...terms.names, ...terms.domains]).toEqual(['db.example', 'corp.example'])
    expect(terms).toMatchObject({ connectTimeoutMs: 7000, instance: '$dst_hostname' })
  })

  test('of the older type names a host and a port', () => {
    const terms = termsOf({ hostname: 'db.example', port: 5432 }, 'ziti-tunneler-client.v1')
    expect([...terms.protocols, ...terms.names]).toEqual(['tcp', 'udp', 'db.example'])
    expect(terms.ports).toEqual([{ low: 5432, high: 5432 }])
  })

  test.each<[string, unknown, string]>([
    ['no object', [], 'is no JSON object'],
    ['without addresses', config([]), 'addresses is missing or empty'],
    ['with every name', config(['*']), 'has *, which is no address'],
    ['with a wildcard within a name', config(['a.*.example']), 'which is no address'],
    ['with an address of an old form', config(['127.1']), 'has 127.1, which is no address'],
    ['with a network of too many bits', config(['10.0.0.0/33']), 'which is no address'],
    [
      'with another protocol',
      config(['a.example'], { protocols: ['sctp'] }),
      'neither tcp nor udp',
    ],
    ['without ports', config(['a.example'], { portRanges: [] }), 'portRanges is missing'],
    [
      'with ports that end before they begin',
      config(['a.example'], { portRanges: [{ low: 9, high: 8 }] }),
      'has 9 to 8, which is no range of ports',
    ],
    ['with port 0', config(['a.example'], { portRanges: [{ low: 0, high: 8 }] }), 'no range'],
    [
      'with clients elsewhere',
      config(['a.example'], { allowedSourceAddresses: ['10.0.0.0/8'] }),
      'allowedSourceAddresses is not supported',
    ],
  ])('%s is not followed', (_what, value, expected) => {
    expect(() => termsOf(value)).toThrow(expected)
  })
})

describe('Of services with overlapping addresses', () => {
  const table = new InterceptTable([
    interceptOf('wide', config(['10.0.0.0/8'])),
    interceptOf('near', config(['10.1.0.0/16'])),
    interceptOf('many ports', config(['10.1.2.0/24'], { portRanges: [{ low: 1, high: 999 }] })),
    interceptOf('one port', config(['10.1.2.0/24'])),
    interceptOf('address', config(['10.1.2.3'])),
    interceptOf('domain', config(['*.example'])),
    interceptOf('longer domain', config(['*.corp.example'])),
    interceptOf('name', config(['db.corp.example'])),
    interceptOf('udp', config(['10.1.2.3'], { protocols: ['udp'] })),
  ])
  const found = (
    address: string,
    hostname: string | null = null,
    port = 80,
    protocol: 'tcp' | 'udp' = 'tcp',
  ) => table.find({ protocol, address: addressOf(address), hostname, port })?.serviceId ?? null

  test.each([
    ['10.9.9.9', 'wide'],
    ['10.1.9.9', 'near'],
    ['10.1.2.9', 'one port'],
    ['10.1.2.3', 'address'],
    ['11.1.2.3', null],
    ['::ffff:10.1.2.3', 'address'],
  ])('the one with the longest prefix gets %s: %s', (address, expected) => {
    expect(found(address)).toBe(expected)
  })

  test.each([
    ['x.example', 'domain'],
    ['example', 'domain'],
    ['x.corp.example', 'longer domain'],
    ['db.corp.example', 'name'],
    ['a.db.corp.example', 'longer domain'],
    ['notexample', null],
  ])('the one with the longest name gets %s: %s', (hostname, expected) => {
    expect(found('100.64.0.2', hostname)).toBe(expected)
  })

  test('one without the port or protocol gets no connection', () => {
    expect(found('10.1.2.3', null, 81)).toBe('many ports')
    expect(found('10.1.2.3', null, 80, 'udp')).toBe('udp')
    expect(found('10.9.9.9', null, 80, 'udp')).toBeNull()
  })
})

describe('Ports for services', () => {
  test('are bound on each address, and once for all addresses of a large network', () => {
    const plan = new ListeningPlan()
    expect(plan.add(interceptOf('a', config(['10.9.9.9', '10.8.8.0/30'])), [])).toBeNull()
    expect(plan.places.size).toBe(5)
    expect(plan.add(interceptOf('b', config(['10.0.0.0/9'])), [])).toBeNull()
    expect([...plan.places.keys()]).toEqual(['tcp any ipv4 80'])
  })

  test.each<[string, unknown, string]>([
    ['a range of too many', config(['10.9.9.9'], { portRanges: [{ low: 1, high: 9999 }] }), '1024'],
    [
      'datagrams to a large network',
      config(['10.0.0.0/9'], { protocols: ['udp'] }),
      'is intercepted for tcp alone',
    ],
  ])('are not opened for %s', (_what, value, expected) => {
    const plan = new ListeningPlan()
    expect(plan.add(interceptOf('a', value), [])).toContain(expected)
    expect(plan.places.size).toBe(0)
    expect(plan.networks).toEqual([])
  })

  test('of all services are limited', () => {
    const plan = new ListeningPlan()
    const ports = { portRanges: [{ low: 1, high: 1000 }] }
    const faults = ['1', '2', '3', '4', '5'].map((at) =>
      plan.add(interceptOf(at, config([`10.9.9.${at}`], ports)), []),
    )
    expect(faults.slice(0, 4)).toEqual([null, null, null, null])
    expect(faults[4]).toContain('4096 ports')
    expect(plan.places.size).toBe(4000)
  })
})

test('a name keeps its address, and loses it last when it is not queried', () => {
  const network = parseCidr('100.64.0.0/29')
  if (network === null) throw new Error('no network')
  let nowMs = 0
  const clock: Pick<Clock, 'monotonicMs'> = { monotonicMs: () => nowMs }
  const used = new Set(['100.64.0.2'])
  const names = new ServiceNames(network, clock, ({ text }) => used.has(text))
  const given = (name: string) => names.use(name)?.text ?? null
  expect(['a', 'b', 'c', 'd', 'e'].map(given)).toEqual(
    ['2', '3', '4', '5', '6'].map((last) => `100.64.0.${last}`),
  )
  expect(given('f')).toBeNull()
  nowMs += interceptLimits.serviceNameIdleMs + 1
  expect(given('c')).toBe('100.64.0.4')
  // The first one has a connection, so that the second gives its address back.
  expect(given('f')).toBe('100.64.0.3')
  expect(names.nameOf(addressOf('100.64.0.3'))).toBe('f')
  expect(given('a')).toBe('100.64.0.2')
})
