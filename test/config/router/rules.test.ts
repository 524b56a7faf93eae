import { describe, expect, test } from 'vitest'

import {
  configuredEndpoints,
  configuredProxy,
} from '../../../src/config/router/router-relations.ts'
import { missingSectionNotes, routerConfigNotes } from '../../../src/config/router/section-notes.ts'
import { routerFields } from '../../../src/config/router/table.ts'
import { webSocketTimeouts } from '../../../src/config/router/table-transport.ts'
import {
  at,
  config,
  expectFault,
  faults,
  faultsOf,
  LEAST,
  parse,
  warnings,
  whole,
} from './support.ts'

// Each rule in the document that defines a router's configuration, in the same order.

describe('The router configuration file', () => {
  test('may have the sections ctrl, csr, dialers, edge, forwarder, healthChecks, identity, link, listeners, metrics, trace, transport, profile, web and v', () => {
    const sections =
      'ctrl csr dialers edge forwarder healthChecks identity link listeners metrics trace transport profile web v'
    expect(Object.keys(routerFields)).toEqual(expect.arrayContaining(sections.split(' ')))
  })

  test('must contain at least ctrl, v and identity', () => {
    const text = LEAST.split('\n').slice(0, 3).join('\n')
    expect(whole(text).csr).toBeNull()
    expect(faultsOf('csr: {}\n').map((fault) => fault.trim().split(' ')[0])).toEqual([
      'v:',
      'identity:',
      'ctrl:',
    ])
  })

  test.each([
    ['csr', 'cannot enroll or renew'],
    ['dialers', 'cannot connect to terminate services'],
    ['edge', 'fabric only'],
    ['link', 'neither dials nor accepts other routers'],
    ['listeners', 'nothing enters the network'],
  ])('without the section %s is accepted with a note that contains “%s”', (name, effect) => {
    const text = LEAST.split('\n').slice(0, 3).join('\n')
    const told = missingSectionNotes(whole(text)).filter((line) => line.startsWith(`no ${name}:`))
    expect(told).toHaveLength(1)
    expect(told[0]).toContain(effect)
  })

  test('causes a note about the option by which a tunnel opens ports to other hosts', () => {
    const tunnel = (options: string): string =>
      `listeners: [{binding: tunnel, options: {${options}}}]\n`
    const notes = (options: string): readonly string[] =>
      routerConfigNotes(config(tunnel(options))).filter((line) => line.includes('all addresses'))
    expect(notes('mode: proxy, services: ["web:8089"]')).toEqual([
      expect.stringMatching(/^listeners\[0\]\.options\.services: .* without log-in; .* proxy\.v1/),
    ])
    expect(notes('mode: proxy')).toEqual([])
    expect(notes('mode: host')).toEqual([])
  })

  test('accepts the web APIs health-checks and metrics, which have no options', () => {
    const web = (api: string): string =>
      `web: [{name: a, bindPoints: [{interface: "127.0.0.1:8081", address: "r.test:8081"}], apis: [${api}]}]`
    expect(
      config(web('{binding: health-checks, options: {}}, {binding: metrics}')).web,
    ).toHaveLength(1)
    expectFault(
      web('{binding: edge-client}'),
      'web[0].apis[0].binding: expected one of health-checks, metrics',
    )
    expect(warnings(web('{binding: health-checks, options: {a: 1}}'))).toEqual([
      '5: web[0].apis[0].options.a: is unknown to this program, and has no effect',
    ])
  })

  test('replaces environment variables at any position in strings', () => {
    const environment = { HOST: 'ctrl9.test', PORT: '6262', ORG: 'Anvil' }
    const found = whole(
      'v: 3\nidentity: {cert: $ORG/c, key: "${ORG}/k"}\nctrl: {endpoints: ["tls:${HOST}:$PORT"]}\n',
      environment,
    )
    expect(found.identity.cert.path).toBe('/etc/flotilla/Anvil/c')
    expect(found.identity.key.path).toBe('/etc/flotilla/Anvil/k')
    expect(configuredEndpoints(found)).toMatchObject([{ host: 'ctrl9.test', port: 6262 }])
    expect(config('trace: {path: "$TMPDIR/t"}\n').trace?.path).toMatch(/^\/.*\/t$/)
  })

  test('causes a warning for an unset variable, which is replaced by an empty string', () => {
    expect(warnings('trace: {path: "a$NOT_SET"}\n')).toEqual([
      '5: trace.path: the environment variable NOT_SET is not set; replaced by nothing',
    ])
  })

  test('is refused without v: 3', () => {
    expect(config().v).toBe(3)
    for (const v of ['2', '4', '"3"', '3.5', 'three', '', '[3]']) {
      const found = faultsOf(LEAST.replace('v: 3', `v: ${v}`))
      expect(found.join(), v).toMatch(
        /^1: v: expected 3, the one version that is supported, found /,
      )
    }
  })
})

describe('The values of router options', () => {
  test.each([
    ['5s', 5000],
    ['1m', 60_000],
    ['24h', 86_400_000],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['250ms', 250],
  ])('accept the duration %s as %d ms', (text, ms) => {
    expect(config(`metrics: {reportInterval: ${text}}\n`)).toMatchObject({
      metrics: { reportInterval: ms },
    })
  })

  test.each(['5', '0', '5d', '5 s', '-5s', '+5s', 's', 'fast', '[5s]', '', 'true'])(
    'reject the duration %s, because it is not a number with a unit',
    (text) => {
      expectFault(
        `metrics: {reportInterval: ${text}}\n`,
        'metrics.reportInterval: expected a duration',
      )
    },
  )

  test('are integers without a unit if they are in milliseconds', () => {
    expect(config('forwarder: {idleTxInterval: 1}\n').forwarder.idleTxInterval).toBe(1)
    for (const text of ['1s', '1.5', '"1"']) {
      expectFault(
        `forwarder: {idleTxInterval: ${text}}\n`,
        'forwarder.idleTxInterval: expected an integer of milliseconds',
      )
    }
  })

  test.each([
    ['tls:ctrl.test:6262', { protocol: 'tls', host: 'ctrl.test', port: 6262 }],
    ['tls:10.0.0.1:1', { host: '10.0.0.1', port: 1 }],
    ['tls:[2001:db8::1]:65535', { host: '2001:db8::1', port: 65_535 }],
  ])('accept the address %s in the form <protocol>:<host>:<port>', (text, parts) => {
    expect(whole(LEAST.replace('tls:ctrl1.test:6262', text)).ctrl.endpoint).toMatchObject(parts)
  })

  test.each([
    'ctrl.test:6262',
    'tls:ctrl.test',
    'tls:ctrl.test:',
    'tls:ctrl.test:0',
    'tls:ctrl.test:65536',
    'tls:2001:db8::1:6262',
    'tls::6262',
    'tls:1.2.3:6262',
    'TLS:ctrl.test:6262',
    'http:ctrl.test:6262',
    'tls:ctrl test:6262',
    'tls://ctrl.test:6262',
  ])('reject the address %s', (text) => {
    const found = faultsOf(LEAST.replace('tls:ctrl1.test:6262', text))
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^3: ctrl\.endpoint: expected an address <protocol>:<host>:<port>/)
  })
})

describe('The configuration section ctrl:', () => {
  const ctrl = (text: string): string => LEAST.replace('{endpoint: "tls:ctrl1.test:6262"}', text)

  test('the key bind is optional', () => {
    expect(config().ctrl.bind).toBeNull()
    expect(whole(ctrl('{endpoint: "tls:a.test:1", bind: eth0}')).ctrl.bind).toBe('eth0')
  })

  test('the default of defaultRequestTimeout is 5s', () => {
    expect(config().ctrl.defaultRequestTimeout).toBe(5000)
    const found = whole(ctrl('{endpoint: "tls:a.test:1", defaultRequestTimeout: 7s}'))
    expect(found.ctrl.defaultRequestTimeout).toBe(7000)
  })

  test('the keys endpoint and endpoints may be absent, because the enrollment token contains the controllers, but must not be empty', () => {
    expect(configuredEndpoints(whole(ctrl('{endpointsFile: e.yml}')))).toEqual([])
    expect(faultsOf(ctrl('{endpoints: []}'))[0]).toMatch(
      /^3: ctrl\.endpoints: expected a list of 1/,
    )
    expect(faultsOf(ctrl('{endpoint: }'))[0]).toMatch(/^3: ctrl\.endpoint: is empty/)
  })

  test('the key "endpoints" is ignored if "endpoint" is also given', () => {
    const text = ctrl('{endpoint: "tls:a.test:1", endpoints: ["tls:b.test:2"]}')
    expect(configuredEndpoints(whole(text)).map((one) => one.text)).toEqual(['tls:a.test:1'])
    expect(parse(text).warnings).toMatchObject([
      { key: 'ctrl.endpoints', problem: 'is ignored: ctrl.endpoint is given' },
    ])
  })

  test('the key "endpoints" contains a list of controller addresses', () => {
    const found = whole(ctrl('{endpoints: ["tls:a.test:1", "tls:b.test:2"]}'))
    expect(configuredEndpoints(found).map((one) => one.text)).toEqual([
      'tls:a.test:1',
      'tls:b.test:2',
    ])
    expect(faultsOf(ctrl('{endpoints: ["tls:a.test:1", "b.test"]}'))).toHaveLength(1)
  })

  test('the key heartbeats is optional', () => {
    expect(config().ctrl.heartbeats).toEqual({
      sendInterval: 10_000,
      checkInterval: 1000,
      closeUnresponsiveTimeout: 30_000,
      unresponsiveAfter: 5000,
    })
  })

  test('the key options accepts the options of a channel, and also endpoint and defaultRequestTimeout', () => {
    const found = whole(
      ctrl('{options: {endpoint: "tls:a.test:1", defaultRequestTimeout: 9s, outQueueSize: 7}}'),
    )
    expect(found.ctrl.endpoint?.host).toBe('a.test')
    expect(found.ctrl.defaultRequestTimeout).toBe(9000)
    expect(found.ctrl.options.outQueueSize).toBe(7)
    const both = ctrl('{endpoint: "tls:a.test:1", options: {endpoint: "tls:b.test:1"}}')
    expect(whole(both).ctrl.endpoint?.host).toBe('a.test')
    expect(parse(both).warnings).toHaveLength(1)
  })
})

describe('The configuration section csr:', () => {
  test('the subject fields country, province, locality, organization and organizationalUnit are accepted, and all are optional', () => {
    const names = ['country', 'province', 'locality', 'organization', 'organizationalUnit']
    expect(names.map((name) => at(config(), `csr.${name}`))).toEqual(names.map(() => null))
    const text = names.map((name) => `${name}: ${name} 1`).join(', ')
    const found = whole(LEAST.replace('csr: {', `csr: {${text}, `))
    expect(names.map((name) => at(found, `csr.${name}`))).toEqual(names.map((name) => `${name} 1`))
  })

  test.each([
    ['dns', 'r.test', '-bad-.', 'a list of DNS names'],
    ['ip', '127.0.0.1', 'r.test', 'a list of IP addresses'],
    ['uri', 'spiffe://a/b', 'no uri', 'a list of URIs'],
    ['email', 'a@r.test', 'a r.test', 'a list of mail addresses'],
  ])(
    'the key sans.%s contains a list of alternative names of that type',
    (kind, good, bad, expected) => {
      const csr = (name: string): string => LEAST.replace('dns: [r.test]', `${kind}: ["${name}"]`)
      expect(at(whole(csr(good)), `csr.sans.${kind}`)).toEqual([good])
      expect(faultsOf(csr(bad))).toEqual([
        `4: csr.sans.${kind}: expected ${expected}, found ["${bad}"]`,
      ])
    },
  )

  test.each([
    ['dns', 'r.test'],
    ['ip', '127.0.0.1'],
    ['uri', 'spiffe://a/b'],
    ['email', 'a@r.test'],
  ])(
    'empty entries of sans.%s, which templates write for unset values, are ignored',
    (kind, good) => {
      const text = LEAST.replace('dns: [r.test]', `${kind}: [null, "${good}", ""]`)
      expect(at(whole(text), `csr.sans.${kind}`)).toEqual([good])
    },
  )

  test('a section csr inside edge is accepted although deprecated, and the section at the top level takes precedence', () => {
    const older = 'edge: {csr: {country: NO}}\n'
    const only = LEAST.replace('csr: {sans: {dns: [r.test]}}\n', '') + older
    expect(whole(only).csr?.country).toBe('NO')
    expect(parse(only).warnings.map(({ key }) => key)).toContain('edge.csr')
    expect(config(older).csr).toMatchObject({ country: null, sans: { dns: ['r.test'] } })
    expect(warnings(older)).toContain('5: edge.csr: is ignored in favour of csr at the top level')
  })

  test('a section without a SAN causes a warning if the router listens for links', () => {
    const text = LEAST.replace('{sans: {dns: [r.test]}}', '{country: NO}')
    const link =
      'link: {listeners: [{binding: transport, bind: "tls:0.0.0.0:1", advertise: "r.test:1"}]}\n'
    expect(parse(text + link).warnings).toMatchObject([{ key: 'csr' }])
    expect(parse(LEAST + link).warnings).toEqual([])
    expect(parse(text).warnings).toEqual([])
  })
})

describe('The configuration section dialers:', () => {
  test.each(['proxy', 'proxy_udp', 'transport', 'transport_udp'])(
    'the binding %s is accepted',
    (name) => {
      expect(config(`dialers: [{binding: ${name}}]\n`).dialers[0]?.binding).toBe(name)
    },
  )

  test('the section is a list of objects with a binding and optional options', () => {
    expectFault('dialers: [{options: {}}]\n', 'dialers[0].binding: is missing')
    expectFault('dialers: {binding: transport}\n', 'dialers: expected a list of sections')
    const found = config('dialers: [{binding: transport, options: {connectTimeout: 3s, mtu: 9}}]\n')
    expect(found.dialers[0]?.options).toMatchObject({
      connectTimeout: 3000,
      mtu: 9,
      retxScale: 1.5,
    })
  })
})

describe('The configuration section edge:', () => {
  test('the section is enabled if it is present, even if it is empty', () => {
    expect(config().edge).toBeNull()
    for (const text of ['edge:\n', 'edge: {}\n']) expect(config(text).edge, text).not.toBeNull()
  })

  test('keys that only other routers use are accepted, with a warning', () => {
    expect(warnings('edge: {csrs: {}, db: x}\n')).toEqual([
      '5: edge.csrs: is unknown to this program, and has no effect; did you mean edge.csr?',
      '5: edge.db: has no effect: the data model is kept only in memory',
      '5: edge: is enabled, and no listener has the binding edge: no client can connect',
    ])
  })
})

describe('The configuration section forwarder:', () => {
  test.each([
    ['faultTxInterval', 15_000, 0, null],
    ['idleCircuitTimeout', 60_000, null, null],
    ['idleTxInterval', 60_000, 0, null],
    ['linkDialQueueLength', 1000, 1, 10_000],
    ['linkDialWorkerCount', 32, 1, 10_000],
    ['rateLimitedQueueLength', 5000, 1, 50_000],
    ['rateLimitedWorkerCount', 5, 1, 10_000],
    ['xgressCloseCheckInterval', 5000, null, null],
    ['xgressDialDwellTime', 0, null, null],
    ['xgressDialQueueLength', 1000, 1, 10_000],
    ['xgressDialWorkerCount', 128, 1, 10_000],
  ])(
    'the default of %s is %d, the minimum is %s and the maximum is %s (null: not tested)',
    (name, fallback, min, max) => {
      const key = `forwarder.${name}`
      const text = (value: number): string => `forwarder: {${name}: ${value}}\n`
      expect(at(config(), key)).toBe(fallback)
      for (const bound of [min, max]) {
        if (bound !== null) expect(at(config(text(bound)), key)).toBe(bound)
      }
      expectFault(text((min ?? 0) - 1), `${key}: expected an integer`)
      if (max !== null) expectFault(text(max + 1), `${key}: expected an integer`)
    },
  )

  test('latencyProbeInterval may have any value, without a warning', () => {
    for (const value of ['0', '10', '5s', '{a: 1}']) {
      expect(warnings(`forwarder: {latencyProbeInterval: ${value}}\n`)).toEqual([])
    }
  })
})

describe('The configuration section healthChecks:', () => {
  test.each([
    ['ctrlPingCheck.interval', 30_000],
    ['ctrlPingCheck.timeout', 15_000],
    ['ctrlPingCheck.initialDelay', 15_000],
    ['linkCheck.interval', 5000],
    ['linkCheck.initialDelay', 1000],
    ['linkCheck.minLinks', 0],
  ])('the default of %s is %d', (name, fallback) => {
    expect(at(config(), `healthChecks.${name}`)).toBe(fallback)
  })

  test('the intervals and timeouts are durations, and minLinks is an integer', () => {
    const found = config(
      'healthChecks: {linkCheck: {minLinks: 2}, ctrlPingCheck: {interval: 1m}}\n',
    )
    expect(found.healthChecks.linkCheck.minLinks).toBe(2)
    expect(found.healthChecks.ctrlPingCheck.interval).toBe(60_000)
    expectFault('healthChecks: {linkCheck: {minLinks: 1s}}\n', 'healthChecks.linkCheck.minLinks')
    expectFault('healthChecks: {linkCheck: {interval: 5}}\n', 'healthChecks.linkCheck.interval')
  })
})

describe('The configuration section identity:', () => {
  test('the keys cert, server_cert, key and ca contain file paths', () => {
    const text = LEAST.replace(
      'server_cert: r.server.cert, key: r.key}',
      'key: /k, server_cert: s, ca: "file:///ca"}',
    )
    expect(whole(text).identity).toMatchObject({
      cert: { path: '/etc/flotilla/r.cert', pem: null },
      server_cert: { path: '/etc/flotilla/s' },
      key: { path: '/k' },
      ca: { path: '/ca' },
    })
  })

  test('PEM text is accepted instead of a path, and a key in it is not printed', () => {
    const pem = '-----BEGIN PRIVATE KEY-----\\nAAAA\\n-----END PRIVATE KEY-----'
    const loaded = parse(LEAST.replace('key: r.key', `key: "pem:${pem}"`))
    expect(loaded.ok && loaded.config.identity.key.pem).toContain('AAAA')
    expect(JSON.stringify(loaded.ok && loaded.effective)).not.toContain('AAAA')
    const wrong = faultsOf(LEAST.replace('key: r.key', 'key: ["AAAA"]'))
    expect(wrong.join()).toMatch(/identity\.key: expected a path.*found another value$/)
  })
})

describe('The configuration section link:', () => {
  const listener = (rest: string): string => `link: {listeners: [{binding: transport, ${rest}}]}\n`
  const dialer = (rest: string): string => `link: {dialers: [{binding: transport${rest}}]}\n`

  test('listeners and dialers are optional', () => {
    expect(config('link: {listeners: []}\n').link).toMatchObject({ listeners: [], dialers: [] })
  })

  test('a listener has binding, bind and advertise, and only the binding transport is supported', () => {
    const found = config(listener('bind: "tls:0.0.0.0:10", advertise: "r.test:10"'))
    expect(found.link?.listeners[0]).toMatchObject({
      binding: 'transport',
      bind: { protocol: 'tls', port: 10 },
      advertise: { host: 'r.test', port: 10 },
    })
    expect(faults('link: {listeners: [{}]}\n')).toEqual([
      expect.stringContaining('5: link.listeners[0].binding: is missing; expected transport'),
      expect.stringContaining('5: link.listeners[0].bind: is missing'),
    ])
    expectFault(
      'link: {listeners: [{binding: x, bind: "tls:0.0.0.0:10", advertise: "r.test:10"}]}\n',
      'link.listeners[0].binding: expected transport, found "x"',
    )
  })

  test('advertise is <host>:<port>, and may also include the protocol', () => {
    const found = config(listener('bind: "tls:0.0.0.0:10", advertise: "tls:r.test:11"'))
    expect(found.link?.listeners[0]?.advertise).toMatchObject({ host: 'r.test', port: 11 })
    expectFault(
      listener('bind: "tls:0.0.0.0:10", advertise: r.test'),
      'link.listeners[0].advertise: expected <host>:<port>',
    )
  })

  test('a listener without advertise advertises the address on which it listens, unless that address is a wildcard', () => {
    const found = config(listener('bind: "tls:192.0.2.1:10"'))
    expect(found.link?.listeners[0]?.advertise).toEqual({ host: '192.0.2.1', port: 10 })
    for (const bind of ['tls:0.0.0.0:10', 'tls:[::]:10', 'tls:192.0.2.1:0']) {
      expectFault(listener(`bind: "${bind}"`), 'link.listeners[0].advertise: is missing')
    }
  })

  test('a listener with the protocol dtls causes the warning that it is not opened', () => {
    expect(warnings(listener('bind: "dtls:0.0.0.0:10", advertise: "dtls:r.test:10"'))).toEqual([
      '5: link.listeners[0].bind: dtls is not supported: this listener is not opened',
    ])
  })

  test('the default of groups is [default]', () => {
    const found = config(listener('bind: "tls:0.0.0.0:10", advertise: "r.test:10"'))
    expect(found.link?.listeners[0]?.groups).toEqual(['default'])
    expect(config(dialer(', groups: [a, b]')).link?.dialers[0]?.groups).toEqual(['a', 'b'])
    expect(config(dialer(', groups: a')).link?.dialers[0]?.groups).toEqual(['a'])
  })

  test('a dialer requires a binding, may have bind, and its split is true by default', () => {
    expect(config(dialer('')).link?.dialers[0]).toMatchObject({ split: true, bind: null })
    expect(config(dialer(', split: false, bind: eth1')).link?.dialers[0]).toMatchObject({
      split: false,
      bind: 'eth1',
    })
    expectFault('link: {dialers: [{}]}\n', 'link.dialers[0].binding: is missing')
  })

  test.each([
    ['healthyDialBackoff', 5000, 300_000, 1.5],
    ['unhealthyDialBackoff', 60_000, 3_600_000, 10],
  ])(
    'the option %s of a dialer has retry intervals of %d to %d ms and the backoff factor %d by default',
    (name, min, max, factor) => {
      expect(config(dialer('')).link?.dialers[0]).toMatchObject({
        [name]: { minRetryInterval: min, maxRetryInterval: max, retryBackoffFactor: factor },
      })
      const with_ = (rest: string): string => dialer(`, ${name}: {${rest}}`)
      const key = `link.dialers[0].${name}`
      expect(config(with_('minRetryInterval: 10ms, maxRetryInterval: 24h'))).toBeDefined()
      for (const bad of ['9ms', '24h1s']) {
        expectFault(
          with_(`minRetryInterval: ${bad}`),
          `${key}.minRetryInterval: expected a duration`,
        )
        expectFault(
          with_(`maxRetryInterval: ${bad}`),
          `${key}.maxRetryInterval: expected a duration`,
        )
      }
      for (const good of ['1', '100', '2.5']) {
        expect(config(with_(`retryBackoffFactor: ${good}`))).toBeDefined()
      }
      for (const bad of ['0.9', '100.5', 'fast']) {
        expectFault(
          with_(`retryBackoffFactor: ${bad}`),
          `${key}.retryBackoffFactor: expected a number`,
        )
      }
      expectFault(
        with_('minRetryInterval: 3h, maxRetryInterval: 2h'),
        `${key}.minRetryInterval: must not exceed maxRetryInterval`,
      )
    },
  )
})

describe('The configuration section proxy:', () => {
  test('the type is either http with an address, or none', () => {
    expect(config().proxy).toBeNull()
    const found = config(
      'proxy: {type: http, address: "p.test:3128", username: u, password: secret}\n',
    )
    expect(configuredProxy(found)).toEqual({
      host: 'p.test',
      port: 3128,
      credentials: { username: 'u', password: 'secret' },
    })
    expect(configuredProxy(config('proxy: {type: none}\n'))).toBeNull()
    expectFault('proxy: {type: http}\n', 'proxy.address: is missing; expected <host>:<port>')
    expectFault(
      'proxy: {address: "p.test:1"}\n',
      'proxy.type: is missing; expected one of none, http',
    )
    expectFault(
      'proxy: {type: socks5, address: "p.test:1"}\n',
      'proxy.type: expected one of none, http',
    )
    expectFault(
      'proxy: {type: none, adress: "p.test:1"}\n',
      'proxy.adress: unknown key; did you mean',
    )
  })

  test('the password is not printed', () => {
    const loaded = parse(
      `${LEAST}proxy: {type: http, address: "p.test:1", username: u, password: secret}\n`,
    )
    expect(JSON.stringify(loaded.ok && loaded.effective)).not.toContain('secret')
  })
})

test.each(['ws', 'tcp', 'dtls', 'udp'])(
  'an edge listener with the protocol %s is reported as a fault',
  (protocol) => {
    expectFault(
      `listeners: [{binding: edge, bind: "${protocol}:0.0.0.0:3022", advertise: "r.test:3022"}]\n`,
      `listeners[0].bind: the binding edge listens on tls or wss, and not on ${protocol}`,
    )
  },
)

describe('The configuration sections metrics, trace, transport, profile and web:', () => {
  test.each([
    ['metrics.reportInterval', 60_000],
    ['metrics.messageQueueSize', 10],
    ['metrics.intervalAgeThreshold', 80_000],
  ])('the default of %s is %d', (key, fallback) => {
    expect(at(config(), key)).toBe(fallback)
  })

  test('trace requires a path', () => {
    expect(config().trace).toBeNull()
    expect(config('trace: {path: t.log}\n').trace?.path).toBe('/etc/flotilla/t.log')
    expectFault('trace: {}\n', 'trace.path: is missing; expected a path')
    expectFault('trace: true\n', 'trace: expected a section with keys, found true')
  })

  test('transport has one section for each protocol, with a profile and an instrument', () => {
    const found = config(
      'transport: {swift: {profile_version: 1, tx_portal_min_sz: 2, tx_portal_max_sz: 3, instrument: {name: n, path: p, snapshot_ms: 4, enabled: true}}}\n',
    )
    expect(found.transport['swift']).toMatchObject({
      profile_version: 1,
      tx_portal_min_sz: 2,
      tx_portal_max_sz: 3,
      instrument: { name: 'n', path: '/etc/flotilla/p', snapshot_ms: 4, enabled: true },
    })
    expectFault('transport: {swift: {profile_version: a}}\n', 'transport.swift.profile_version')
    expectFault(
      'transport: {swift: {instrument: {enabled: 1}}}\n',
      'transport.swift.instrument.enabled',
    )
  })

  test('transport.ws and transport.wss contain the web socket timeouts, and those in wss take precedence', () => {
    const found = config(
      'transport: {ws: {pingInterval: 3, pongTimeout: 4}, wss: {pingInterval: 5}}\n',
    )
    expect(webSocketTimeouts(found.transport)).toEqual({
      readTimeout: 5000,
      handshakeTimeout: 10_000,
      pingInterval: 5000,
      pongTimeout: 4000,
    })
    expectFault('transport: {ws: {pingInterval: 5s}}\n', 'transport.ws.pingInterval')
  })

  test('transport.ws is accepted as configuration generators write it, with a warning for each key without effect', () => {
    const found = warnings(
      'transport: {ws: {writeTimeout: 10, readTimeout: 5, idleTimeout: 5, pongTimeout: 60, pingInterval: 54, handshakeTimeout: 10, readBufferSize: 4096, writeBufferSize: 4096, enableCompression: true, server_cert: c, key: k}}\n',
    )
    expect(
      found.map((warning) => /transport\.ws\.(\w+): has no effect/.exec(warning)?.[1]),
    ).toEqual([
      'writeTimeout',
      'idleTimeout',
      'enableCompression',
      'readBufferSize',
      'writeBufferSize',
      'server_cert',
      'key',
    ])
  })

  test('profile.cpu and profile.memory require a path, and the default interval of memory profiles is 15 s', () => {
    expect(config('profile: {memory: {path: m}}\n').profile).toMatchObject({
      cpu: null,
      memory: { path: '/etc/flotilla/m', intervalMs: 15_000 },
    })
    expectFault('profile: {cpu: {}}\n', 'profile.cpu.path: is missing')
    expectFault('profile: {memory: {intervalMs: 1000}}\n', 'profile.memory.path: is missing')
    expectFault('profile: {memory: {path: m, intervalMs: 15s}}\n', 'profile.memory.intervalMs')
  })

  test('web requires for each server a name, bind points and APIs', () => {
    expect(faults('web: [{}]\n')).toEqual([
      '5: web[0].name: is missing; expected a text that is not empty',
      '5: web[0].bindPoints: is missing; expected a list of sections with the keys interface, address, newAddress',
      '5: web[0].apis: is missing; expected a list of sections with the keys binding, options',
    ])
  })
})
