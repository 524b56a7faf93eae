import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

import { renderRouterConfigReference } from '../../../src/config/router/config-reference.ts'
import { fuzz } from '../engine/fuzz.ts'
import { faultsOf, LEAST, parse, routerSubject, warnings } from './support.ts'

describe('A configuration of a router', () => {
  test('is reported with all its faults in one run: line, key, value, allowed values and the nearest name', () => {
    const text = `v: "3"
identiti: {}
ctrl:
  heartbeats: {sendInterval: 5}
forwarder: {linkDialWorkerCount: 0, rateLimitedQueueLength: 50001}
link:
  listeners: [{binding: foo, bind: "tls:1.2.3:9", advertise: "r.test:1"}]
dialers: {binding: x}
`
    expect(faultsOf(text)).toEqual([
      ' identity: is missing; expected a section with cert, key, server_cert, server_key, ca, alt_server_certs',
      '1: v: expected 3, the one version that is supported, found "3"',
      '4: ctrl.heartbeats.sendInterval: expected a duration such as 5s, 1m or 24h, from 100ms to 1h, found 5',
      '5: forwarder.linkDialWorkerCount: expected an integer from 1 to 10000, found 0',
      '5: forwarder.rateLimitedQueueLength: expected an integer from 1 to 50000, found 50001',
      '7: link.listeners[0].binding: expected transport, found "foo"',
      '7: link.listeners[0].bind: expected an address <protocol>:<host>:<port> with the protocol tls or dtls and a port from 0 to 65535, an IPv6 address in brackets, found "tls:1.2.3:9"',
      '8: dialers: expected a list of sections with the keys binding, options, found a section',
    ])
  })

  test('is shown with the source of each effective value: the file, the environment or the default', () => {
    const loaded = parse(`${LEAST}trace: {path: "$WHERE/t"}\n`, { WHERE: '/var' })
    if (!loaded.ok) throw new Error('refused')
    const of = (key: string): unknown => loaded.effective.find((one) => one.key === key)
    expect(of('v')).toEqual({
      key: 'v',
      value: '3',
      source: { kind: 'file', line: 1 },
      hasEffect: true,
    })
    expect(of('trace.path')).toEqual({
      key: 'trace.path',
      value: '/var/t',
      source: { kind: 'environment', line: 5, names: ['WHERE'] },
      hasEffect: true,
    })
    expect(of('metrics.reportInterval')).toMatchObject({ value: '1m', source: { kind: 'default' } })
    expect(of('ctrl.endpointsFile')).toMatchObject({ value: '/etc/flotilla/endpoints.yml' })
  })

  test('marks the same keys as having no effect as the docs page does', () => {
    const loaded = parse(`${LEAST}edge: {csr: {country: NO}}
link: {listeners: [{binding: transport, bind: "tls:0.0.0.0:1", advertise: "r.test:1"}], dialers: [{binding: transport}]}
dialers: [{binding: transport}]
listeners: [{binding: tunnel}]
transport: {dtls: {}}
`)
    if (!loaded.ok) throw new Error('refused')
    const rows = renderRouterConfigReference().split('\n')
    const isMarked = (key: string): boolean => {
      const name = key.replaceAll(/\[\d+\]/g, '[]').replace('transport.dtls', 'transport.<name>')
      const found = rows.filter((row) => row.startsWith(`| \`${name}\``))
      expect(found, key).not.toEqual([])
      // Each binding has its own table; a listener has the options of one binding.
      const isOfBinding = key.startsWith('listeners[0].options.')
      const marks = found.map((row) => row.endsWith('No effect in this version. |'))
      return isOfBinding ? marks.includes(true) : marks.every(Boolean)
    }
    for (const { key, hasEffect } of loaded.effective) expect(isMarked(key), key).toBe(!hasEffect)
    const inert = loaded.effective.filter(({ hasEffect }) => !hasEffect).map(({ key }) => key)
    expect(inert).toContain('listeners[0].options.udpCheckInterval')
    for (const key of [
      'edge.csr.country',
      'forwarder.idleTxInterval',
      'link.dialers[0].bind',
      'transport',
    ]) {
      expect(inert).not.toContain(key)
    }
  })

  test('is accepted with keys that only other routers support, with a warning for each', () => {
    expect(warnings('plugins: [a.so]\nha: {enabled: true}\n')).toEqual([
      '5: plugins: has no effect: plugins of other routers cannot be loaded',
      '6: ha: has no effect: the router always follows the members of the cluster',
    ])
  })
})

test('3,000 random router configuration files cause no exception, and each reported fault has a key and an existing line', () => {
  expect(fuzz(routerSubject, { seed: 1, files: 3000 }).files).toBe(3000)
})

test('docs/reference/router-configuration.md matches the table of options (FLOTILLA_RECORD=1 writes it)', () => {
  const path = join(import.meta.dirname, '../../../docs/reference/router-configuration.md')
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(path, renderRouterConfigReference())
  expect(readFileSync(path, 'utf8')).toBe(renderRouterConfigReference())
})
