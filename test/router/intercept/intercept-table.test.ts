import { describe, expect, test } from 'vitest'

import type { Clock } from '../../../src/lib/clock.ts'
import {
  type InterceptConfigType,
  parseInterceptConfig,
} from '../../../src/overlay/intercept/intercept-config.ts'
import { InterceptTable } from '../../../src/overlay/intercept/intercept-table.ts'
import { ListeningPlan } from '../../../src/overlay/intercept/listening-plan.ts'
import { ServiceAddressAllocator } from '../../../src/overlay/intercept/service-address-allocator.ts'
import { interceptLimits } from '../../../src/overlay/intercept/limits.ts'
import { parseIp } from '../../../src/lib/text/ip-address.ts'
import { parseCidr } from '../../../src/lib/text/networks.ts'

// Goal: a service config is either read as intended or refused; if several services match a
// connection, the most specific one gets it; names keep their addresses.

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

describe('The intercept config of a service', () => {
  test('contains addresses, networks, names, domains and dial options', () => {
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

  test('of the older type contains one host name and one port', () => {
    const terms = termsOf({ hostname: 'db.example', port: 5432 }, 'ziti-tunneler-client.v1')
    expect([...terms.protocols, ...terms.names]).toEqual(['tcp', 'udp', 'db.example'])
    expect(terms.ports).toEqual([{ low: 5432, high: 5432 }])
  })

  test('converts internationalized names to punycode', () => {
    const terms = termsOf(config(['bücher.example', '*.Straße.example', 'bu\u0308cher.example']))
    expect([...terms.names]).toEqual(['xn--bcher-kva.example'])
    expect([...terms.domains]).toEqual(['xn--strae-oqa.example'])
  })

  test('keeps its valid addresses if another address is invalid, and reports the invalid one', () => {
    const terms = termsOf(config(['good.example', 'http://other.example', '１２７.0.0.1']))
    expect([...terms.names]).toEqual(['good.example'])
    expect(terms.networks).toEqual([])
    expect(terms.faults).toEqual([
      'http://other.example is no address, network, name or *.domain',
      '１２７.0.0.1 is no address, network, name or *.domain',
    ])
  })

  test.each<[string, unknown, string]>([
    ['is not an object', [], 'is no JSON object'],
    ['has no addresses', config([]), 'addresses is missing or empty'],
    ['has a wildcard for every name', config(['*']), 'has *, which is no address'],
    ['has a wildcard within a name', config(['a.*.example']), 'which is no address'],
    ['has an address in a legacy notation', config(['127.1']), 'has 127.1, which is no address'],
    ['has a network prefix that is too long', config(['10.0.0.0/33']), 'which is no address'],
    [
      'has an unsupported protocol',
      config(['a.example'], { protocols: ['sctp'] }),
      'neither tcp nor udp',
    ],
    ['has no ports', config(['a.example'], { portRanges: [] }), 'portRanges is missing'],
    [
      'has a port range that ends before it begins',
      config(['a.example'], { portRanges: [{ low: 9, high: 8 }] }),
      'has 9 to 8, which is no range of ports',
    ],
    ['has port 0', config(['a.example'], { portRanges: [{ low: 0, high: 8 }] }), 'no range'],
    [
      'has allowed source addresses',
      config(['a.example'], { allowedSourceAddresses: ['10.0.0.0/8'] }),
      'allowedSourceAddresses is not supported',
    ],
  ])('is refused if it %s', (_what, value, expected) => {
    expect(() => termsOf(value)).toThrow(expected)
  })
})

describe('Among services that intercept overlapping addresses,', () => {
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
    ['11.1.2.3', 'none'],
    ['::ffff:10.1.2.3', 'address'],
  ])(
    'a connection to %s goes to the service with the longest matching prefix (here: %s)',
    (address, expected) => {
      expect(found(address) ?? 'none').toBe(expected)
    },
  )

  test.each([
    ['x.example', 'domain'],
    ['example', 'domain'],
    ['x.corp.example', 'longer domain'],
    ['db.corp.example', 'name'],
    ['a.db.corp.example', 'longer domain'],
    ['notexample', 'none'],
  ])(
    'a connection to the name %s goes to the service with the longest matching name (here: %s)',
    (hostname, expected) => {
      expect(found('100.64.0.2', hostname) ?? 'none').toBe(expected)
    },
  )

  test('a service that does not intercept the port or protocol gets no connection', () => {
    expect(found('10.1.2.3', null, 81)).toBe('many ports')
    expect(found('10.1.2.3', null, 80, 'udp')).toBe('udp')
    expect(found('10.9.9.9', null, 80, 'udp')).toBeNull()
  })
})

describe('The ports on which a router intercepts services', () => {
  const planned = (plan: ListeningPlan, value: unknown) => {
    const intercept = interceptOf('a', value)
    return plan.add(intercept, intercept.terms.networks, [])
  }
  const wide = { portRanges: [{ low: 1, high: 65_535 }] }

  test('are bound on each address, or on all addresses of the host if the intercepted network is large', () => {
    const plan = new ListeningPlan(null)
    expect(planned(plan, config(['10.9.9.9', '10.8.8.0/30']))).toEqual({ isAny: true, faults: [] })
    expect(plan.places.size).toBe(5)
    expect(planned(plan, config(['10.0.0.0/9']))).toEqual({ isAny: true, faults: [] })
    expect([...plan.places.keys()]).toEqual(['tcp any ipv4 80'])
  })

  test('are replaced by one port per address and protocol, to which a wide range is redirected', () => {
    const plan = new ListeningPlan(null)
    const value = config(['10.9.9.9', '10.8.8.0/31'], { ...wide, protocols: ['tcp', 'udp'] })
    expect(planned(plan, value)).toEqual({ isAny: true, faults: [] })
    expect(plan.places.size).toBe(0)
    expect([...plan.redirected.keys()]).toEqual([
      'tcp 10.9.9.9',
      'tcp 10.8.8.0',
      'tcp 10.8.8.1',
      'udp 10.9.9.9',
      'udp 10.8.8.0',
      'udp 10.8.8.1',
    ])
    expect(plan.redirected.get('udp 10.8.8.1')?.ranges).toEqual([{ low: 1, high: 65_535 }])
  })

  test.each<[string, unknown, string]>([
    ['a wide port range of an IPv6 address', config(['fd77::5'], wide), 'IPv4 addresses alone'],
    ['a wide port range of a network', config(['10.0.0.0/24'], wide), '1024 ports'],
    [
      'datagrams to a large network',
      config(['10.0.0.0/9'], { protocols: ['udp'] }),
      'is intercepted for tcp alone',
    ],
  ])('are not bound for %s', (_what, value, expected) => {
    const plan = new ListeningPlan(null)
    expect(planned(plan, value)).toEqual({
      isAny: false,
      faults: [expect.stringContaining(expected)],
    })
    expect([plan.places.size, plan.redirected.size, plan.networks]).toEqual([0, 0, []])
  })

  test('are not bound if their range is wide and the host cannot redirect ports', () => {
    const plan = new ListeningPlan('nft is missing')
    const faults = ['10.9.9.9/32: nft is missing']
    expect(planned(plan, config(['10.9.9.9'], wide))).toEqual({ isAny: false, faults })
  })

  test('are bound on the other addresses of a service if they cannot be bound on one of them', () => {
    const plan = new ListeningPlan(null)
    const { isAny, faults } = planned(plan, config(['fd77::5', '10.9.9.9'], wide))
    expect([isAny, faults.length]).toEqual([true, 1])
    expect([...plan.redirected.keys()]).toEqual(['tcp 10.9.9.9'])
  })

  test('are limited in number over all services', () => {
    const plan = new ListeningPlan(null)
    const ports = { portRanges: [{ low: 1, high: 1000 }] }
    const faults = ['1', '2', '3', '4', '5'].map(
      (at) => planned(plan, config([`10.9.9.${at}`], ports)).faults,
    )
    expect(faults.slice(0, 4)).toEqual([[], [], [], []])
    expect(faults[4]?.[0]).toContain('4096 ports')
    expect(plan.places.size).toBe(4000)
  })

  test('are also limited in number over all services if connections are redirected to them', () => {
    const plan = new ListeningPlan(null)
    const faults = Array.from({ length: 20 }, (_, at) =>
      planned(plan, config([`10.9.${at}.0/28`], wide)).faults.join(),
    )
    expect(faults.filter((fault) => fault === '')).toHaveLength(16)
    expect(faults[19]).toContain('256 addresses are redirected already')
    expect(plan.redirected.size).toBe(256)
  })
})

test('a service name keeps its address; if no address is free, a new name gets the address of a name that is idle and has no connection', () => {
  const network = parseCidr('100.64.0.0/29')
  if (network === null) throw new Error('no network')
  let nowMs = 0
  const clock: Pick<Clock, 'monotonicMs'> = { monotonicMs: () => nowMs }
  const used = new Set(['100.64.0.2'])
  const names = new ServiceAddressAllocator(network, clock, ({ text }) => used.has(text))
  const given = (name: string) => names.use(name)?.text ?? null
  expect(['a', 'b', 'c', 'd', 'e'].map(given)).toEqual(
    ['2', '3', '4', '5', '6'].map((last) => `100.64.0.${last}`),
  )
  expect(given('f')).toBeNull()
  nowMs += interceptLimits.serviceNameIdleMs + 1
  expect(given('c')).toBe('100.64.0.4')
  // The first service has a connection, so the table releases the address of the second service.
  expect(given('f')).toBe('100.64.0.3')
  expect(names.nameOf(addressOf('100.64.0.3'))).toBe('f')
  expect(given('a')).toBe('100.64.0.2')
})
