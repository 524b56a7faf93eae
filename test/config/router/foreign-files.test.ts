import { describe, expect, test } from 'vitest'

import { config, expectFault, faults, faultsOf, LEAST, parse, warnings } from './support.ts'

describe('A configuration file that was written for an OpenZiti router', () => {
  test('is accepted with a warning for each unknown key, with its line and the nearest known key', () => {
    const text = 'colour: blue\nmetrics:\n  reportIntervall: 5s\ntransport: {quic: {window: 60}}\n'
    expect(faults(text)).toEqual([])
    expect(warnings(text)).toEqual([
      '5: colour: is unknown to this program, and has no effect',
      '7: metrics.reportIntervall: is unknown to this program, and has no effect; did you mean metrics.reportInterval?',
      '8: transport.quic.window: is unknown to this program, and has no effect',
    ])
  })

  test('is refused if a required key is misspelled', () => {
    const text = LEAST.replace('identity:', 'identiti:')
    expect(faultsOf(text)).toEqual([
      ' identity: is missing; expected a section with cert, key, server_cert, server_key, ca, alt_server_certs',
    ])
    expect(parse(text).warnings.map(({ key }) => key)).toEqual(['identiti'])
  })

  // With the default value, each of these keys would be less strict than the operator's value.
  test.each([
    ['identity: {cert: c, key: k, server_keys: s}', 'identity.server_keys', 'identity.server_key'],
    [
      'identity: {cert: c, key: k, alt_server_certs: [{server_cert: a, serverkey: b}]}',
      'identity.alt_server_certs[0].serverkey',
      'identity.alt_server_certs[0].server_key',
    ],
    [
      'interfaceDiscovery: {disable: true}',
      'interfaceDiscovery.disable',
      'interfaceDiscovery.disabled',
    ],
  ])('is refused for the misspelling in %s', (section, key, meant) => {
    const rest = LEAST.split('\n').filter((line) => !section.startsWith(line.split(' ')[0] ?? '-'))
    const found = faultsOf(`${section}\n${rest.join('\n')}`)
    expect(found).toEqual([`1: ${key}: unknown key; did you mean ${meant}?`])
  })

  test('is accepted if a dialer or listener has an unknown binding, and the router skips only this entry', () => {
    const text =
      'dialers: [{binding: udp}, {binding: transport}, {binding: edge}]\nlisteners: [{binding: quic, address: "tls:0.0.0.0:1"}, {binding: tunnel}]\n'
    expect(config(text).dialers.map(({ binding }) => binding)).toEqual(['transport'])
    expect(warnings(text)).toEqual([
      '5: dialers[0].binding: this router has no binding udp, and skips the entry; transport_udp is the binding for datagrams',
      '5: dialers[2].binding: this router has no binding edge, and skips the entry; terminators of clients need no entry',
      '6: listeners[0].binding: this router has no binding quic, and skips the entry; known bindings: edge, transport, transport_udp, tunnel, proxy, proxy_udp',
    ])
  })

  test.each([
    [
      'dialers: [{binding: transprt}]\n',
      'dialers[0].binding: unknown binding transprt; did you mean transport?',
    ],
    [
      'listeners: [{binding: edgy}]\n',
      'listeners[0].binding: unknown binding edgy; did you mean edge?',
    ],
  ])('is refused for a misspelled binding: %s', expectFault)

  test('may contain a key twice, and then the last value is used', () => {
    const text = 'metrics:\n  messageQueueSize: 3\n  messageQueueSize: 5\n'
    expect(config(text).metrics.messageQueueSize).toBe(5)
    expect(warnings(text)).toEqual([
      '7: messageQueueSize is given twice in its section, and the last one counts',
    ])
  })

  test('may have any value for getSessionTimeout, without a warning', () => {
    for (const value of ['60', '60s', 'x']) {
      const options = `{advertise: "r.test:1", getSessionTimeout: ${value}}`
      const listener = `{binding: edge, address: "tls:0.0.0.0:1", options: ${options}}`
      expect(warnings(`edge: {}\nlisteners: [${listener}]\n`)).toEqual([])
    }
  })
})
