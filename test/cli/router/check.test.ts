import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { acquirePathLock } from '../../../src/cli/terminal/process-lock.ts'
import { closeServer, startListening, listeningPort } from '../../../src/lib/runtime/listening.ts'
import {
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { networkAuthorities } from '../../support/authorities.ts'
import { freePort } from '../../support/ports.ts'
import { runHere } from '../run-here.ts'

const folder = mkdtempSync(join(tmpdir(), 'flotilla-router-check-'))
const path = join(folder, 'router.yml')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const GOOD = `v: 3
identity: {cert: r.cert, key: r.key}
ctrl: {endpoint: "tls:$WHERE:6262", startupTimeout: 10s}
`

describe('router check', () => {
  test('accepts a valid configuration, and notes that the router cannot enroll without a csr section', async () => {
    writeFileSync(path, GOOD)
    const done = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain(`${path}: the configuration is valid\n`)
    expect(done.stdout).toContain(
      'note: no csr: the router cannot enroll or renew its enrollment\n',
    )
  })

  test('counts the warnings about unknown keys, and refuses them only with --strict', async () => {
    writeFileSync(path, `${GOOD}listners: []\nmystery: 1\n`)
    const found = [
      `flotilla: warning: ${path}:4: listners: is unknown to this program, and has no effect; did you mean listeners?`,
      `flotilla: warning: ${path}:5: mystery: is unknown to this program, and has no effect`,
    ]
    const check = ['router', 'check', path, '--config-only']
    const done = await runHere(check, { WHERE: 'ctrl1.test' })
    expect(done.code).toBe(0)
    expect(done.stderr.trimEnd().split('\n')).toEqual(found)
    expect(done.stdout).toContain(`${path}: the configuration is valid, with 2 warnings\n`)
    const strict = await runHere([...check, '--strict'], { WHERE: 'ctrl1.test' })
    expect([strict.code, strict.stdout]).toEqual([2, ''])
    expect(strict.stderr.trimEnd().split('\n')).toEqual([
      ...found,
      `flotilla: ${path}: 2 warnings, which --strict refuses`,
    ])
    const asJson = await runHere([...check, '--strict', '--json'], { WHERE: 'ctrl1.test' })
    expect(asJson.code).toBe(2)
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      isValid: false,
      warnings: [{ key: 'listners' }, { key: 'mystery' }],
    })
    writeFileSync(path, GOOD)
    expect(await runHere([...check, '--strict'], { WHERE: 'ctrl1.test' })).toMatchObject({
      code: 0,
    })
  })

  test('prints each effective value with its source', async () => {
    writeFileSync(path, GOOD)
    const done = await runHere(['router', 'check', path, '--print'], { WHERE: 'ctrl1.test' })
    expect(done.stdout.split('\n')).toEqual(
      expect.arrayContaining([
        'v = 3  # line 1',
        `identity.cert = ${join(folder, 'r.cert')}  # line 2`,
        'ctrl.endpoint = tls:ctrl1.test:6262  # line 3, environment WHERE',
        'ctrl.startupTimeout = 10s  # line 3',
        'metrics.reportInterval = 1m  # default',
      ]),
    )
  })

  test('prints for each key whether it has an effect in this version, and includes missing sections', async () => {
    const more = 'edge: {csr: {sans: {dns: [a.test]}}}\nforwarder: {}\n'
    writeFileSync(path, GOOD + more)
    const printed = await runHere(['router', 'check', path, '--print'], { WHERE: 'ctrl1.test' })
    const lines = printed.stdout.split('\n')
    const keys = (name: RegExp): string[] => lines.filter((line) => name.test(line))
    const withoutEffect = keys(/^(ctrl|forwarder|identity|edge\.csr)\./).filter((line) =>
      /, no effect in this version$/.test(line),
    )
    expect(withoutEffect.map((line) => line.split(' ')[0])).toEqual([
      'ctrl.options.outQueueSize',
      'ctrl.options.maxQueuedConnects',
      'ctrl.options.maxOutstandingConnects',
    ])
    expect(keys(/^edge\.csr\./)).not.toEqual([])
    const checked = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
    expect(checked.stdout).toContain('note: no identity.ca: no controller is verified')
  })

  test.each(['wiki:70000', 'wiki:0', 'wiki'])(
    'refuses the service %s in a tunnel configuration',
    async (service) => {
      const options = `{mode: proxy, services: ["${service}"]}`
      writeFileSync(path, `${GOOD}listeners: [{binding: tunnel, options: ${options}}]\n`)
      const done = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
      expect(done.code).toBe(2)
      expect(done.stderr).toContain('expected a list of <service name>:<port>')
    },
  )

  test('reports every fault with its line, and exits with 2', async () => {
    writeFileSync(path, 'v: 2\nctrl: {endpoint: x}\nidentity: {certs: x}\n')
    const done = await runHere(['router', 'check', path])
    expect(done.code).toBe(2)
    expect(done.stdout).toBe('')
    expect(done.stderr).toContain(`flotilla: ${path}:1: v: expected 3`)
    expect(done.stderr).toContain(`flotilla: ${path}:2: ctrl.endpoint: expected an address`)
    expect(done.stderr).toContain(`flotilla: ${path}:3: identity.certs: unknown key; did you mean`)
    expect(done.stderr).toContain('4 faults in the configuration')
  })

  test('reports a port that another process uses, and exits with 1', async () => {
    const server = createServer()
    await startListening(server, { host: '127.0.0.1', port: 0 })
    const taken = `127.0.0.1:${listeningPort(server)}`
    const listener = `listeners: [{binding: proxy, service: web, bind: "tcp:${taken}"}]\n`
    writeFileSync(path, GOOD + listener)
    const done = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
    expect(done.code).toBe(1)
    expect(done.stdout).toBe('')
    expect(done.stderr).toContain(
      `flotilla: ${path}:4: listeners[0].bind: ${taken} is in use by another process`,
    )
    expect(done.stderr).toContain(`${path}: the router cannot start on this host`)
    const asJson = await runHere(['router', 'check', path, '--json'], { WHERE: 'ctrl1.test' })
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      isValid: false,
      faults: [{ line: 4, key: 'listeners[0].bind' }],
    })
    const alone = ['router', 'check', path, '--config-only']
    expect(await runHere(alone, { WHERE: 'ctrl1.test' })).toMatchObject({ code: 0 })
    await closeServer(server)
    const again = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('without csr')])
  })

  test('reports keys and certificates with which the router would not start, and exits with 1', async () => {
    const identity = 'identity: {cert: e.cert, server_cert: e.server.cert, key: e.key, ca: e.ca}'
    writeFileSync(path, GOOD.replace(/identity: .*/, identity))
    const check = (): ReturnType<typeof runHere> =>
      runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
    const before = await check()
    expect([before.code, before.stdout]).toEqual([
      0,
      expect.stringContaining("no certificates yet: 'flotilla router enroll' writes them"),
    ])

    const { root, issuing } = await networkAuthorities(Date.now())
    const issue = (...usages: ('client' | 'server')[]): ReturnType<typeof issueLeaf> =>
      issueLeaf({
        issuer: issuing,
        commonName: 'router-1',
        uris: [],
        hosts: ['router1.test'],
        usages,
        validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
      })
    const leaf = await issue('client', 'server')
    const put = (name: string, text: string): void =>
      writeFileSync(join(folder, `e.${name}`), text, { mode: 0o600 })
    put('cert', leaf.certificatePem)
    put('server.cert', leaf.certificatePem)
    put('ca', root.certificatePem)
    const missing = await check()
    expect(missing.code).toBe(1)
    expect(missing.stderr).toContain(`${path}:2: identity.key: ${join(folder, 'e.key')} cannot be`)

    put('key', issuing.privateKeyPem)
    expect((await check()).stderr).toContain(
      'identity.key: the private key does not belong to the certificate',
    )
    put('key', leaf.privateKeyPem)
    expect(await check()).toMatchObject({ code: 0, stderr: '' })
    put('ca', '')
    expect((await check()).stderr).toContain('identity.ca: no PEM certificate found')
    put('ca', root.certificatePem)

    const server = await issue('server')
    put('cert', server.certificatePem)
    put('key', server.privateKeyPem)
    expect((await check()).stderr).toContain(
      'identity.cert: its extended key usage lacks clientAuth\n',
    )
    const client = await issue('client')
    put('cert', client.certificatePem)
    put('server.cert', client.certificatePem)
    put('key', client.privateKeyPem)
    expect((await check()).stderr).toContain(
      'identity.server_cert: its extended key usage lacks serverAuth\n',
    )
  })

  test('reports two listeners whose addresses conflict', async () => {
    const port = await freePort()
    const listener = (host: string) => `{binding: proxy, service: web, bind: "tcp:${host}:${port}"}`
    writeFileSync(path, `${GOOD}listeners: [${listener('0.0.0.0')}, ${listener('127.0.0.1')}]\n`)
    const done = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
    expect(done.stderr).toContain(`listeners[1].bind: 127.0.0.1:${port} is in use`)
    expect(done.code).toBe(1)
  })

  test('reports an address that this host does not have, for a web server and for UDP', async () => {
    const web = `web: [{name: h, bindPoints: [{interface: "192.0.2.1:1", address: "r.test:1"}], apis: [{binding: health-checks}]}]`
    const datagrams = 'listeners: [{binding: proxy_udp, service: web, bind: "udp:192.0.2.1:1"}]'
    writeFileSync(
      path,
      `${GOOD.replace('key: r.key', 'key: r.key, server_cert: s')}${web}\n${datagrams}\n`,
    )
    const done = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
    expect(done.stderr).toContain(
      'web[0].bindPoints[0].interface: 192.0.2.1:1 is not an address of this host',
    )
    expect(done.stderr).toContain('listeners[0].bind: 192.0.2.1:1 is not an address of this host')
    expect(done.code).toBe(1)
  })

  test('does not test the ports of a router that already runs with the configuration', async () => {
    const server = createServer()
    await startListening(server, { host: '127.0.0.1', port: 0 })
    const bind = `tcp:127.0.0.1:${listeningPort(server)}`
    writeFileSync(path, `${GOOD}listeners: [{binding: proxy, service: web, bind: "${bind}"}]\n`)
    const lock = await acquirePathLock('router', realpathSync(path))
    const done = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
    expect(done.code).toBe(0)
    expect(done.stdout).toContain('note: a router with this configuration is running, so its ports')
    await closeServer(lock)
    await closeServer(server)
  })

  test('names the process of a router that another user runs with the configuration', async () => {
    const server = createServer()
    await startListening(server, { host: '127.0.0.1', port: 0 })
    const bind = `tcp:127.0.0.1:${listeningPort(server)}`
    writeFileSync(path, `${GOOD}listeners: [{binding: proxy, service: web, bind: "${bind}"}]\n`)
    // The lock of a router belongs to its user, so only the command line shows this router.
    const words = ['-e', 'process.stdin.resume()', 'router', 'run', '--log-level', 'debug', path]
    const child = spawn(process.execPath, words, { stdio: ['pipe', 'ignore', 'ignore'] })
    try {
      await once(child, 'spawn')
      const done = await runHere(['router', 'check', path], { WHERE: 'ctrl1.test' })
      expect(done.code).toBe(0)
      expect(done.stdout).toContain(
        `note: a router with this configuration is running (process ${child.pid}), so its ports were not tested\n`,
      )
    } finally {
      child.kill('SIGKILL')
      await closeServer(server)
    }
  })

  test('prints the same result as JSON', async () => {
    writeFileSync(path, 'v: 2\n')
    const done = await runHere(['router', 'check', path, '--json'])
    expect(done.code).toBe(2)
    expect(JSON.parse(done.stdout)).toMatchObject({
      isValid: false,
      faults: expect.arrayContaining([expect.objectContaining({ line: 1, key: 'v' })]) as unknown[],
    })
    writeFileSync(path, GOOD)
    const good = await runHere(['router', 'check', path, '--json', '--print'], { WHERE: 'a.test' })
    expect(JSON.parse(good.stdout)).toMatchObject({
      isValid: true,
      faults: [],
      effective: expect.arrayContaining([
        { key: 'v', value: '3', source: { kind: 'file', line: 1 }, hasEffect: true },
      ]) as unknown[],
    })
  })
})

test('router options prints the documentation of every configuration key', async () => {
  const { stdout } = await runHere(['router', 'options'])
  const page = join(import.meta.dirname, '../../../docs/reference/router-configuration.md')
  expect(stdout).toBe(readFileSync(page, 'utf8'))
})
