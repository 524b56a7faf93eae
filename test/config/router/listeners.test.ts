import { describe, expect, test } from 'vitest'

import { parseAddress } from '../../../src/config/router/values.ts'
import { config, expectFault, faults, faultsOf, warnings } from './support.ts'

describe('the section listeners of a router configuration', () => {
  const listener = (rest: string): string => `listeners: [{${rest}}]\n`
  const edge = 'edge: {}\n'

  test('accepts the bindings edge, transport and tunnel, and requires a binding', () => {
    for (const binding of ['edge', 'transport']) {
      const text = listener(`binding: ${binding}, bind: "tls:0.0.0.0:1", advertise: "r.test:1"`)
      expect(config(text).listeners[0]?.binding).toBe(binding)
    }
    expect(config(listener('binding: tunnel')).listeners[0]?.binding).toBe('tunnel')
    expectFault(
      listener('bind: "tls:0.0.0.0:1", advertise: "r.test:1"'),
      'listeners[0].binding: is missing',
    )
  })

  test.each(['bind', 'address'])(
    'accepts an address in the form <protocol>:<host>:<port> under the key %s',
    (name) => {
      const text = (place: string): string =>
        listener(`binding: edge, ${name}: "${place}", advertise: "r.test:1"`)
      expect(config(edge + text('tls:0.0.0.0:3022')).listeners[0]?.bind).toMatchObject({
        port: 3022,
      })
      expect(faults(text('0.0.0.0:3022'))[0]).toMatch(
        /^5: listeners\[0\]\.bind: expected an address/,
      )
    },
  )

  test('requires either bind or address, and not both', () => {
    expect(faults(listener('binding: edge, advertise: "r.test:1"'))[0]).toMatch(
      /^5: listeners\[0\]\.bind: is missing/,
    )
    const both =
      'binding: edge, bind: "tls:0.0.0.0:1", address: "tls:0.0.0.0:1", advertise: "r.test:1"'
    expect(faults(listener(both))).toEqual([
      '5: listeners[0].bind: is given twice, as bind and address; give one',
    ])
  })

  test('requires advertise for the binding edge, and accepts it inside options as well', () => {
    const below = listener('binding: edge, bind: "tls:0.0.0.0:1", options: {advertise: "r.test:2"}')
    expect(config(edge + below).listeners[0]?.advertise).toEqual({ host: 'r.test', port: 2 })
    expectFault(
      listener('binding: edge, bind: "tls:0.0.0.0:1"'),
      'listeners[0].advertise: is missing; expected <host>:<port>',
    )
  })

  test.each(['proxy', 'transport', 'transport_udp', 'proxy_udp'])(
    'does not require advertise for the binding %s',
    (binding) => {
      const address = binding.endsWith('_udp') ? 'udp:0.0.0.0:1' : 'tcp:0.0.0.0:1'
      const text = listener(`binding: ${binding}, service: web, address: "${address}"`)
      expect(config(text).listeners[0]?.advertise).toBeNull()
    },
  )

  test.each([
    ['proxy', 'udp:0.0.0.0:1', 'tcp or tls'],
    ['transport_udp', 'tcp:0.0.0.0:1', 'udp'],
  ])(
    'refuses, for the binding %s, the address %s, because the router cannot serve it',
    (binding, address, served) => {
      const text = listener(
        `binding: ${binding}, service: web, bind: "${address}", advertise: "r.test:1"`,
      )
      const { protocol } = parseAddress(address) ?? { protocol: '' }
      expectFault(
        text,
        `listeners[0].bind: the binding ${binding} listens on ${served}, and not on ${protocol}`,
      )
    },
  )

  test('requires a server certificate for listeners with TLS', () => {
    const text = (listeners: string): string =>
      `v: 3\nidentity: {cert: r.cert, key: r.key}\nctrl: {endpoint: "tls:a.test:1"}\n${listeners}`
    const place = 'bind: "tls:0.0.0.0:1", advertise: "r.test:1"'
    for (const [section, key] of [
      [`edge: {}\nlisteners: [{binding: edge, ${place}}]\n`, 'listeners[0]'],
      [`link: {listeners: [{binding: transport, ${place}}]}\n`, 'link.listeners[0]'],
      [`listeners: [{binding: proxy, service: web, ${place}}]\n`, 'listeners[0]'],
    ]) {
      expect(faultsOf(text(section ?? ''))).toEqual([
        `2: identity.server_cert: is missing; ${key} needs a server certificate`,
      ])
    }
    const tcp = 'listeners: [{binding: proxy, service: web, bind: "tcp:0.0.0.0:1"}]\n'
    expect(faultsOf(text(tcp))).toEqual([])
  })

  const clients = '{binding: edge, bind: "tls:0.0.0.0:1", advertise: "r.test:1"}'
  const proxy = '{binding: proxy, service: web, bind: "tls:0.0.0.0:1"}'
  const links =
    'link: {listeners: [{binding: transport, bind: "tls:0.0.0.0:1", advertise: "r.test:1"}]}\n'

  test('accepts the same address for clients and for links', () => {
    expect(faults(`${edge}${links}listeners: [${clients}]\n`)).toEqual([])
  })

  test.each([
    [
      'two listeners for clients',
      `listeners: [${clients}, ${clients}]\n`,
      'listeners[1]',
      'listeners[0]',
    ],
    ['clients and a proxy', `listeners: [${clients}, ${proxy}]\n`, 'listeners[1]', 'listeners[0]'],
    ['links and a proxy', `listeners: [${proxy}]\n${links}`, 'link.listeners[0]', 'listeners[0]'],
  ])('refuses the same address for %s', (_, sections, key, other) => {
    expect(faults(sections).map((fault) => fault.replace(/^\d+: /, ''))).toEqual([
      `${key}.bind: takes the same address as ${other}.bind (tls:0.0.0.0:1)`,
    ])
  })

  const tunnel = (options: string): string => listener(`binding: tunnel, options: {${options}}`)

  test('accepts for the binding tunnel the modes host (the default) and tproxy, and refuses an unknown mode', () => {
    expect(config(listener('binding: tunnel')).listeners[0]?.options['mode']).toBe('host')
    for (const mode of ['host', 'tproxy', 'tproxy:/bin/diverter']) {
      expect(config(tunnel(`mode: "${mode}"`)).listeners[0]?.options['mode']).toBe(mode)
    }
    expectFault(tunnel('mode: other'), 'listeners[0].options.mode: expected host, tproxy')
  })

  test('accepts, for the binding tunnel in mode proxy, services in the form <service name>:<port>, optionally with :tcp or :udp at the end', () => {
    const found = config(tunnel('mode: proxy, services: ["web shop:8080", "db:5432"]'))
    expect(found.listeners[0]?.options['services']).toEqual(['web shop:8080', 'db:5432'])
    const also = config(tunnel('mode: proxy, services: ["web:8080:tcp", "dns:53:udp"]'))
    expect(also.listeners[0]?.options['services']).toEqual(['web:8080:tcp', 'dns:53:udp'])
    // The config of a service may also determine the port on which it is offered.
    expect(config(tunnel('mode: proxy')).listeners[0]?.options['services']).toEqual([])
    expectFault(
      tunnel('mode: proxy, services: ["web:8080:sctp"]'),
      'listeners[0].options.services: expected',
    )
    expectFault(tunnel('mode: proxy, services: [web]'), 'listeners[0].options.services: expected')
  })

  test('accepts, for the binding tunnel in mode tproxy, the options resolver, dnsSvcIpRange and dnsUpstream', () => {
    const found = config(
      tunnel('mode: tproxy, resolver: "udp://127.0.0.1:53", dnsSvcIpRange: 100.64.0.0/10'),
    )
    expect(found.listeners[0]?.options).toMatchObject({
      resolver: ['udp://127.0.0.1:53'],
      dnsSvcIpRange: '100.64.0.0/10',
    })
    for (const wrong of ['here', 'tcp://127.0.0.1:53', 'udp://127.0.0.1', 'udp://dns.example:53']) {
      expectFault(
        tunnel(`mode: tproxy, resolver: "${wrong}"`),
        'listeners[0].options.resolver: expected',
      )
    }
    for (const upstream of ['192.0.2.53', 'udp://192.0.2.53:5353', 'udp://[2001:db8::53]:53']) {
      const { options } =
        config(tunnel(`mode: tproxy, dnsUpstream: "${upstream}"`)).listeners[0] ?? {}
      expect(options?.['dnsUpstream']).toEqual([upstream])
    }
    expectFault(
      tunnel('mode: tproxy, dnsUpstream: dns.example'),
      'listeners[0].options.dnsUpstream: expected',
    )
    expect(warnings(tunnel('mode: "tproxy:/bin/diverter"'))).toEqual([
      '5: listeners[0].options.mode: the program after tproxy: is not called: routes are enough',
    ])
    expectFault(
      tunnel('mode: tproxy, dnsSvcIpRange: 1.2.3.4'),
      'listeners[0].options.dnsSvcIpRange',
    )
    expect(warnings(tunnel('resolver: "udp://127.0.0.1:53"'))).toEqual([
      '5: listeners[0].options.resolver: has no effect in mode host, which is the default here: it is for tproxy',
    ])
  })
})
