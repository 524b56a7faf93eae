import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

import { routerConfigurationDocument } from '../../../src/config/router/document.ts'
import { loadRouterConfig } from '../../../src/config/router/load.ts'
import { fuzz } from './fuzz.ts'
import { faultsOf, LEAST, parse, warnings } from './support.ts'

describe('A configuration of a router', () => {
  test('that is wrong is told every fault at once, with line, key, what was found, what is allowed and the nearest name', () => {
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
      '2: identiti: unknown key; did you mean identity?',
      '3: ctrl: one of endpoint and endpoints is missing; expected an address tls:<host>:<port>',
      '4: ctrl.heartbeats.sendInterval: expected a duration as 5s, 1m or 24h, from 100ms to 1h, found 5',
      '5: forwarder.linkDialWorkerCount: expected an integer from 1 to 10000, found 0',
      '5: forwarder.rateLimitedQueueLength: expected an integer from 1 to 50000, found 50001',
      '7: link.listeners[0].binding: expected transport, found "foo"',
      '7: link.listeners[0].bind: expected an address <protocol>:<host>:<port> with the protocol tls or dtls and a port from 0 to 65535, an IPv6 address in brackets, found "tls:1.2.3:9"',
      '8: dialers: expected a list of sections with the keys binding, options, found a section',
    ])
  })

  test.each([
    ['an empty file', '', 'v: is missing'],
    ['a list', '- a\n', 'expected a section with keys'],
    ['a text', 'hello\n', 'expected a section with keys'],
    ['no YAML', 'v: [3\n', 'Flow sequence'],
    ['a key that stands twice', `${LEAST}v: 3\n`, 'the same key is given twice'],
    ['an alias of nothing', 'v: *a\n', 'an anchor that is not there'],
    ['an alias of itself', 'v: 3\nctrl: &a {endpoints: [*a]}\n', 'nested deeper'],
    [
      'aliases that stand for a billion values',
      `a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n`,
      'more than',
    ],
    ['nesting without end', '['.repeat(5000), ''],
  ])('that is %s is refused without an exception', (_, text, told) => {
    expect(faultsOf(text).join('\n')).toContain(told)
  })

  test('that is not there, or is a folder, is told as one fault', () => {
    const problemOf = (path: string): unknown => {
      const loaded = loadRouterConfig(path, {})
      return loaded.ok ? null : loaded.faults.map(({ problem }) => problem)
    }
    expect(problemOf('/nowhere/at/all.yml')).toEqual(['file not found'])
    expect(problemOf('/')).toEqual(['is a folder; name the file in it'])
    expect(problemOf('/dev/null')).toEqual(['is not a regular file'])
  })

  test('in force tells of each value whether it is of the file, the environment or the default', () => {
    const loaded = parse(`${LEAST}trace: {path: "$WHERE/t"}\n`, { WHERE: '/var' })
    if (!loaded.ok) throw new Error('refused')
    const of = (key: string): unknown => loaded.effective.find((one) => one.key === key)
    expect(of('v')).toEqual({ key: 'v', value: '3', source: { kind: 'file', line: 1 } })
    expect(of('trace.path')).toEqual({
      key: 'trace.path',
      value: '/var/t',
      source: { kind: 'environment', line: 5, names: ['WHERE'] },
    })
    expect(of('metrics.reportInterval')).toMatchObject({ value: '1m', source: { kind: 'default' } })
    expect(of('ctrl.endpointsFile')).toMatchObject({ value: '/etc/flotilla/endpoints.yml' })
  })

  test('with keys of other routers that have no meaning here is accepted with a warning each', () => {
    expect(warnings('plugins: [a.so]\nha: {enabled: true}\n')).toEqual([
      '5: plugins: has no effect: plugins of other routers cannot be loaded',
      '6: ha: has no effect: the members of the cluster are followed without it',
    ])
  })
})

test('3,000 files of chance are judged without an exception, each fault with a key and a line that is there', () => {
  expect(fuzz({ seed: 1, files: 3000 }).files).toBe(3000)
})

test('docs/router-configuration.md says what the table says (FLOTILLA_RECORD=1 writes it anew)', () => {
  const path = join(import.meta.dirname, '../../../docs/router-configuration.md')
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(path, routerConfigurationDocument())
  expect(readFileSync(path, 'utf8')).toBe(routerConfigurationDocument())
})
