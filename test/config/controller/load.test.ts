import { describe, expect, test } from 'vitest'

import { advertisedHosts } from '../../../src/config/controller/advertised-hosts.ts'
import { ownApiAddresses } from '../../../src/controller/settings.ts'
import { parseControllerConfig } from '../../../src/config/controller/load.ts'
import type { Environment } from '../../../src/config/engine/environment.ts'
import { clusterScopeOptionsSha256 } from '../../../src/config/controller/cluster-scope-options.ts'
import { fuzz } from '../engine/fuzz.ts'
import { controllerSubject, faultsOf, FILE, GOOD, load } from './support.ts'

/** The text of GOOD with one line replaced; fails if the line does not exist. */
function changed(line: string, replacement: string): string {
  expect(GOOD).toContain(`${line}\n`)
  return GOOD.replace(`${line}\n`, replacement === '' ? '' : `${replacement}\n`)
}

describe('A configuration', () => {
  test('is read with default values for missing options, and its paths are relative to its folder', () => {
    const config = load(GOOD)
    expect(config.id).toBe('ctrl1')
    expect(config.data).toBe('/etc/flotilla/data')
    expect(config.identity.ca).toBe('/srv/ca.pem')
    expect(config.raft.electionTimeoutMs).toBe(600)
    expect(config.routers.bind).toBeNull()
    expect(config.threads).toBe(true)
    expect(config.web).toEqual([
      {
        bind: '127.0.0.1:1280',
        advertise: 'localhost:1280',
        apis: ['edge-client', 'edge-management', 'fabric', 'health-checks', 'console'],
        names: [],
        proxyProtocol: { from: [] },
        spa: null,
      },
    ])
  })

  test('treats an empty section as absent', () => {
    expect(load(`${GOOD}raft:\n`).raft.tickMs).toBe(50)
  })

  test('reports every fault in one run, with file, line and key', () => {
    const text = `id: -bad-
data: data
trustDomain: Test.Example
identity:
  cert: pki/cert.pem
  kei: pki/key.pem
  ca: 5
cluster:
  bind: 127.0.0.1
  advertise: 127.0.0.1:99999
web:
  - bind: 127.0.0.1:1280
    advertise: localhost:1280
    apis: [edge-client, edge-klient]
raft: {tickMs: fast}
threads: yes
colour: blue
`
    expect(faultsOf(text)).toEqual([
      `${FILE}:1: id: expected 1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit, found "-bad-"`,
      `${FILE}:3: trustDomain: expected 1 to 255 lower-case letters, digits, '.', '_' or '-', found "Test.Example"`,
      `${FILE}:6: identity.kei: unknown key; did you mean identity.key?`,
      `${FILE}:7: identity.ca: expected a path, found 5`,
      `${FILE}:9: cluster.bind: expected host:port with a port from 1 to 65535, an IPv6 address in brackets, found "127.0.0.1"`,
      `${FILE}:10: cluster.advertise: expected host:port with a port from 1 to 65535, an IPv6 address in brackets, found "127.0.0.1:99999"`,
      `${FILE}:14: web[0].apis: expected a list of one or more of edge-client, edge-management, fabric, health-checks, console, spa, metrics, each once, found ["edge-client","edge-klient"]`,
      `${FILE}:15: raft.tickMs: expected an integer from 5 to 1000, found "fast"`,
      `${FILE}:16: threads: expected true or false, found "yes"`,
      `${FILE}:17: colour: unknown key; known keys: id, data, trustDomain, identity, cluster, routers, web, serverCertificates, raft, log, audit, api, oidc, enrollment, limits, logLevel, logFile, backup, events, threads`,
    ])
  })

  test.each([
    ['an empty file', '', 'id: is missing'],
    ['a list at the top', '- a\n', 'expected a section'],
    ['a text at the top', 'hello\n', 'expected a section'],
    ['no listener', changed('web:', 'web: []\nx:'), 'web: is empty; expected one or more sections'],
    [
      'a list item that is no section',
      changed('web:', 'web:\n  - 5'),
      'web[0]: expected a section',
    ],
    ['a listener without APIs', `${GOOD}    apis: []\n`, 'web[0].apis: expected a list'],
    ['an API named twice', `${GOOD}    apis: [fabric, fabric]\n`, 'each once'],
    ['a number out of range', `${GOOD}raft: {tickMs: 0}\n`, 'raft.tickMs: expected an integer'],
    ['a fraction', `${GOOD}raft: {tickMs: 50.5}\n`, 'raft.tickMs: expected an integer'],
    ['a key without its value', changed('id: ctrl1', 'id:'), 'id: expected'],
    ['a section where a value must be', changed('id: ctrl1', 'id: {a: b}'), 'found a section'],
    ['a value where a section must be', `${GOOD}raft: 5\n`, 'raft: expected a section'],
    ['an address with a path', changed('  - bind: 127.0.0.1:1280', '  - bind: a:1/x'), 'host:port'],
  ])('is refused with %s', (_title, text, part) => {
    expect(faultsOf(text).join('\n')).toContain(part)
  })

  test('accepts the host names of a listener as DNS names and IP addresses, in a list or a string', () => {
    const names = ['api.example.net', 'balancer', '192.0.2.7', '2001:db8::7']
    const line = `    names: ["${names.join('", "')}"]\n`
    expect(load(GOOD + line).web[0]?.names).toEqual(names)
    const name = 'FLOTILLA_WEB_0_NAMES'
    expect(load(GOOD, { [name]: names.join(', ') }).web[0]?.names).toEqual(names)
    const long = `${'a'.repeat(63)}.`.repeat(4)
    const malformed = [
      '*.example.net',
      'a..b',
      'a:443',
      '[::1]',
      'fe80::1%eth0',
      '-a.net',
      '_a.net',
      'a b',
      long,
    ]
    for (const wrong of [...malformed, '10.1.2.256', '1.2.3', 'a, a', 'spiffe://a']) {
      expect(faultsOf(GOOD, { [name]: wrong })).toEqual([
        expect.stringContaining('web[0].names: expected a list of up to 16 DNS names'),
      ])
    }
  })

  test('is refused if it has more host names than a certificate may contain', () => {
    const listener = (at: number): string => {
      const names = Array.from({ length: 16 }, (_, one) => `n${at}-${one}.test`)
      return `  - {bind: "127.0.0.1:${1281 + at}", advertise: "localhost:${1281 + at}", names: [${names.join(', ')}]}\n`
    }
    expect(faultsOf(GOOD + listener(0))).toEqual([])
    expect(faultsOf(GOOD + listener(0) + listener(1))).toEqual([
      `${FILE}:14: web[1].names: gives the certificate 35 hosts with the other listeners; 32 are allowed`,
    ])
  })

  test('accepts networks as address and prefix, in a list or a string', () => {
    const networks = ['10.0.0.0/8', 'fd00::/8', '192.0.2.1/32']
    const line = `api: {refusedSignerNetworks: ["${networks.join('", "')}"]}`
    expect(load(`${GOOD}${line}\n`).api.refusedSignerNetworks).toEqual(networks)
    const name = 'FLOTILLA_API_REFUSED_SIGNER_NETWORKS'
    expect(load(GOOD, { [name]: networks.join(', ') }).api.refusedSignerNetworks).toEqual(networks)
    expect(load(GOOD, { [name]: '' }).api.refusedSignerNetworks).toEqual([])
    for (const wrong of ['10.0.0.0', '10.0.0.0/33', 'fd00::/129', 'a/8', '10.0.0.0/8/8', '1/8']) {
      expect(faultsOf(GOOD, { [name]: wrong }).join(), wrong).toContain('networks like 10.0.0.0/8')
    }
    expect(faultsOf(GOOD, { [name]: '10.0.0.0/8,10.0.0.0/8' }).join()).toContain('each once')
  })
})

describe('Rules about combinations of options', () => {
  test.each([
    ['raft: {heartbeatMs: 120}', 'raft.heartbeatMs: must be a multiple of raft.tickMs (50)'],
    ['raft: {heartbeatMs: 200}', 'raft.electionTimeoutMs: must be at least 4 times'],
    ['raft: {electionTimeoutMaxMs: 600}', 'raft.electionTimeoutMaxMs: must exceed'],
    ['limits: {writeTimeoutMs: 10000}', 'limits.writeTimeoutMs: must be below'],
    ['oidc: {accessTokenMs: 120000, refreshTokenMs: 130000}', 'oidc.refreshTokenMs: must exceed'],
    ['logFile: {path: data/log}', 'logFile.path: must be outside of data (/etc/flotilla/data)'],
    ['events: {file: {path: data/events}}', 'events.file.path: must be outside of data'],
    ['backup: {folder: /b}', 'backup.folder: requires backup.recipient'],
    [
      'backup: {folder: data/b, recipient: k.pem}',
      'backup.folder: must be outside of data (/etc/flotilla/data)',
    ],
    [
      'backup: {hook: [cp]}',
      'backup.hook: expected a list of up to 32 words, the first of them the absolute path',
    ],
    ['routers: {bind: "0.0.0.0:1480"}', 'routers.bind: takes the same address as cluster.bind'],
    ['routers: {advertise: "r.example.org:443"}', 'routers.advertise: requires routers.bind'],
    [
      'routers: {bind: "0.0.0.0:1380", advertise: [a:1, b:1, c:1, d:1, e:1]}',
      'routers.advertise: expected host:port with a port from 1 to 65535, an IPv6 address in brackets; a list of up to 4 of them',
    ],
    ['routers: {bind: "0.0.0.0:1380", advertise: [a:1, a:1]}', 'routers.advertise: expected host'],
    ['routers: {bind: "0.0.0.0:1380", advertise: [a]}', 'routers.advertise: expected host'],
  ])('refuse %s', (line, part) => {
    const [fault, ...others] = faultsOf(`${GOOD}${line}\n`)
    expect(fault).toContain(`${FILE}:14: ${part}`)
    expect(others).toEqual([])
  })

  test('refuse the same file for events and logs', () => {
    const lines = 'logFile: {path: /var/log/x}\nevents: {file: {path: /var/log/x}}\n'
    expect(faultsOf(GOOD + lines)).toEqual([
      `${FILE}:15: events.file.path: is also the log file (/var/log/x); choose another file for events`,
    ])
  })

  test('refuse a signing CA with a key but without a certificate, and a server certificate that occurs twice', () => {
    const signer = changed('  cert: pki/cert.pem', '  cert: pki/cert.pem\n  signer: {key: k.pem}')
    expect(faultsOf(signer)).toEqual([
      `${FILE}:6: identity.signer.key: requires identity.signer.cert; set both or neither`,
    ])
    const twice = 'serverCertificates: [{cert: pki/cert.pem, key: k.pem}]\n'
    expect(faultsOf(GOOD + twice)).toEqual([
      `${FILE}:14: serverCertificates[0].cert: is named more than once (/etc/flotilla/pki/cert.pem); give each certificate a separate file`,
    ])
  })

  test('refuse metrics on a listener with other APIs, or on every address', () => {
    const listener = (bind: string, apis: string): string =>
      `${GOOD}  - bind: ${bind}\n    advertise: localhost:1290\n    apis: [${apis}]\n`
    expect(faultsOf(listener('127.0.0.1:1290', 'metrics, fabric'))[0]).toContain(
      'web[1].apis: metrics needs no log-in; move it to a separate listener',
    )
    for (const host of ['0.0.0.0', '[::]']) {
      expect(faultsOf(listener(`"${host}:1290"`, 'metrics'))[0]).toContain(
        'web[1].bind: exposes the metrics',
      )
    }
    expect(faultsOf(listener('127.0.0.1:1290', 'metrics'))).toEqual([])
  })

  test('refuse two listeners on one port', () => {
    const twice = `${GOOD}  - bind: 127.0.0.1:1280\n    advertise: localhost:1280\n`
    expect(faultsOf(twice)).toEqual([
      `${FILE}:14: web[1].bind: takes the same address as web[0].bind (127.0.0.1:1280)`,
    ])
  })
})

test('Routers and one web listener may share a port if both sections contain exactly the same address', () => {
  const routers = (bind: string): string => `${GOOD}routers: {bind: "${bind}"}\n`
  expect(faultsOf(routers('127.0.0.1:1280'))).toEqual([])
  expect(faultsOf(routers('0.0.0.0:1280'))).toEqual([
    `${FILE}:12: web[0].bind: takes the same address as routers.bind (0.0.0.0:1280); with the same text, both would share the port`,
  ])
  const web = '  - bind: 127.0.0.1:1280\n    advertise: localhost:1280\n'
  expect(faultsOf(`${GOOD}${web}routers: {bind: "127.0.0.1:1280"}\n`)).toEqual([
    `${FILE}:14: web[1].bind: takes the same address as web[0].bind (127.0.0.1:1280)`,
  ])
})

test.each([
  ['null', []],
  ['r.example.org:443', ['r.example.org:443']],
  ['["10.0.0.1:1380", "r.example.org:443"]', ['10.0.0.1:1380', 'r.example.org:443']],
])(
  'The value %s of routers.advertise determines the addresses to which routers connect',
  (written, addresses) => {
    const config = load(`${GOOD}routers: {bind: "0.0.0.0:1380", advertise: ${written}}\n`)
    expect(config.routers.advertise).toEqual(addresses)
    const hosts = addresses.map((address) => address.split(':')[0])
    expect(advertisedHosts(config)).toEqual(expect.arrayContaining(hosts))
    const listed = ownApiAddresses(config).filter(({ api }) => api === 'router-control')
    const shown = addresses.length === 0 ? ['127.0.0.1:1380'] : addresses
    expect(listed.map(({ url }) => url)).toEqual(shown.map((address) => `tls:${address}`))
  },
)

describe('Environment variables', () => {
  test('override the configuration file, and add options that the file lacks', () => {
    const config = load(changed('trustDomain: test.example', ''), {
      FLOTILLA_ID: 'ctrl9',
      FLOTILLA_TRUST_DOMAIN: 'other.example',
      FLOTILLA_RAFT_TICK_MS: '25',
      FLOTILLA_THREADS: 'false',
      FLOTILLA_WEB_0_APIS: 'fabric, edge-client',
    })
    expect(config.id).toBe('ctrl9')
    expect(config.trustDomain).toBe('other.example')
    expect(config.raft.tickMs).toBe(25)
    expect(config.threads).toBe(false)
    expect(config.web[0]?.apis).toEqual(['edge-client', 'fabric'])
  })
})

describe('The Raft timing profile', () => {
  const raftOf = (section: string, environment: Environment = {}) =>
    load(`${GOOD}raft: ${section}\n`, environment).raft

  test('replaces the default values, but options that are set take precedence over the profile', () => {
    expect(raftOf('{profile: wan}')).toEqual({
      profile: 'wan',
      tickMs: 50,
      heartbeatMs: 500,
      electionTimeoutMs: 3000,
      electionTimeoutMaxMs: 6000,
    })
    const environment = { FLOTILLA_RAFT_HEARTBEAT_MS: '250' }
    expect(raftOf('{profile: wan, electionTimeoutMaxMs: 9000}', environment)).toMatchObject({
      heartbeatMs: 250,
      electionTimeoutMs: 3000,
      electionTimeoutMaxMs: 9000,
    })
    expect(raftOf('{profile: lan}')).toEqual(load(GOOD).raft)
  })

  test('is validated together with other options, and is shown with the effective values', () => {
    expect(faultsOf(`${GOOD}raft: {profile: wan, electionTimeoutMs: 1000}\n`)).toEqual([
      expect.stringContaining('must be at least 4 times raft.heartbeatMs (500)'),
    ])
    expect(faultsOf(`${GOOD}raft: {profile: moon}\n`)).toEqual([
      expect.stringContaining('raft.profile: expected one of lan, wan'),
    ])
    const loaded = parseControllerConfig(FILE, `${GOOD}raft: {profile: wan}\n`, {})
    if (!loaded.ok) throw new Error('it is valid')
    expect(loaded.effective.find(({ key }) => key === 'raft.heartbeatMs')).toMatchObject({
      value: '500',
      source: { kind: 'default' },
    })
  })
})

describe('The fingerprint of the options that all controllers share', () => {
  const fingerprint = (text: string): string =>
    Buffer.from(clusterScopeOptionsSha256(load(text))).toString('hex')

  test('depends only on shared options, and not on options of one controller', () => {
    const one = fingerprint(GOOD)
    expect(fingerprint(changed('id: ctrl1', 'id: ctrl2'))).toBe(one)
    expect(fingerprint(`${GOOD}logLevel: debug\n`)).toBe(one)
    expect(fingerprint(`${GOOD}raft: {electionTimeoutMs: 650}\n`)).not.toBe(one)
    expect(fingerprint(`${GOOD}oidc: {accessTokenMs: 120000}\n`)).not.toBe(one)
    expect(fingerprint(changed('trustDomain: test.example', 'trustDomain: b'))).not.toBe(one)
  })

  test('equals the fingerprint that the previous release computes, because an upgrade compares the two', () => {
    expect(fingerprint(GOOD)).toBe(
      '220b226343fb11d858b29a1a4a979496b76651bc613117065e4e40a8622b923d',
    )
  })
})

test('1,000 random configuration files cause no exception, and each reported fault has a key and an existing line', () => {
  const { files, accepted } = fuzz(controllerSubject, { seed: 1, files: 1000 })
  expect(files).toBe(1000)
  expect(accepted).toBeGreaterThan(0)
})
