import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { createApi } from '../../src/api/server.ts'
import { loadControllerConfig, parseControllerConfig } from '../../src/config/controller/load.ts'
import type { ControllerConfig } from '../../src/config/controller/options.ts'
import { ServerCertificates } from '../../src/controller/service/server-certificates.ts'
import { HttpsListeners } from '../../src/controller/service/listeners.ts'
import { openTlsPorts } from '../../src/controller/service/ports.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  type LeafOptions,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import { alarmTable } from '../../src/cluster/alarm-table.ts'
import { startController, type TestController } from '../api/support/controller.ts'
import { newCa } from '../support/authorities.ts'
import { freePort } from '../support/ports.ts'

// Goal: browsers that use another server name get a certificate that they trust, and nothing
// changes for all other clients.

const DAY_MS = 24 * 60 * 60_000
const dir = mkdtempSync(join(tmpdir(), 'flotilla-server-certificates-'))
const files = { cert: join(dir, 'fullchain.pem'), key: join(dir, 'privkey.pem') }

let controller: TestController
let config: ControllerConfig
let own: CertificateWithKey
let publicCa: CertificateWithKey
let port = 0
let nowMs = 0
let alarms: string[] = []
let lines: string[] = []
let servers: ServerCertificates
let listeners: HttpsListeners

beforeAll(async () => {
  controller = await startController()
  nowMs = controller.clock.nowMs()
  publicCa = await newCa('a public authority', nowMs)
  own = await leafBy(controller.authorities.issuing, { hosts: ['ctrl1.example.org', '127.0.0.1'] })
  port = await freePort()
  config = configAt(port)
  const caPem = controller.authorities.anchorsPem()
  const chain = parseCertificates(own.certificatePem)
  const byName = (name: string): ReturnType<ServerCertificates['contextFor']> =>
    servers.contextFor(name)
  const credentials = { ...own, caPem, signerCaPem: '', chain }
  listeners = await HttpsListeners.open({
    api: createApi(controller.parts),
    config,
    credentials,
    ports: await openTlsPorts(config, { warn: () => undefined }),
    byName,
  })
})
afterAll(async () => {
  await listeners.close()
  await controller.close()
  rmSync(dir, { recursive: true, force: true })
})
beforeEach(async () => {
  nowMs = controller.clock.nowMs()
  alarms = []
  lines = []
  await put({})
  servers = serversOf()
  servers.reload()
})

function configAt(at: number): ControllerConfig {
  const text = `id: ctrl1
data: data
trustDomain: net.example
identity: { cert: cert.pem, key: key.pem, ca: ca.pem }
cluster: { bind: "127.0.0.1:1480", advertise: "ctrl1.example.org:1480" }
web: [{ bind: "127.0.0.1:${at}", advertise: "ctrl1.example.org:${at}" }]
serverCertificates: [{ cert: fullchain.pem, key: privkey.pem }]
`
  const loaded = parseControllerConfig(join(dir, 'config.yml'), text, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
  return loaded.config
}

function serversOf(): ServerCertificates {
  const say = (_fields: object, message: string): number => lines.push(message)
  return new ServerCertificates({
    files: config.serverCertificates,
    ownLeaf: () => parseCertificates(own.certificatePem)[0],
    alarms: {
      raise: (code, facts) => alarms.push(`${code} ${alarmTable[code].text(facts as never)}`),
      clear: (code) => alarms.push(`clear ${code}`),
    },
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    log: { info: say, error: say } as never,
  })
}

function leafBy(
  issuer: CertificateWithKey,
  changes: Partial<LeafOptions>,
): Promise<CertificateWithKey> {
  return issueLeaf({
    issuer,
    commonName: 'a server',
    uris: [],
    usages: ['server'],
    hosts: ['console.example.org', '*.apps.example.org'],
    validity: { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 90 * DAY_MS },
    ...changes,
  })
}

async function put(changes: Partial<LeafOptions>): Promise<CertificateWithKey> {
  const leaf = await leafBy(publicCa, changes)
  writeFileSync(files.cert, leaf.certificatePem)
  writeSecretFile(files.key, leaf.privateKeyPem)
  return leaf
}

interface Seen {
  readonly status: number
  /** SHA-256 of the presented certificate. */
  readonly sha256: string
  readonly socket: TLSSocket
}

function ask(servername: string, agent?: Agent): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const path = '/edge/client/v1/version'
    const where = { host: '127.0.0.1', port, path, servername }
    // The test compares the certificate itself, because TLS would check it with the real time, and
    // this controller has a test clock.
    const asked = request({ ...where, agent: agent ?? false, rejectUnauthorized: false })
    asked.on('error', reject)
    asked.on('response', (answer) => {
      const socket = answer.socket as TLSSocket
      const shown = socket.getPeerX509Certificate()?.fingerprint256 ?? ''
      answer.resume()
      answer.on('end', () => {
        const sha256 = shown.replaceAll(':', '').toLowerCase()
        resolve({ status: answer.statusCode ?? 0, sha256, socket })
      })
    })
    asked.end()
  })
}

const printOf = ({ certificatePem }: CertificateWithKey): string =>
  parseCertificates(certificatePem)[0].sha256

describe('A listener with several server certificates', () => {
  test('presents another CA’s certificate for the server names in it, and serves requests normally', async () => {
    const web = await put({})
    servers.reload()
    for (const name of ['console.example.org', 'wiki.apps.example.org']) {
      expect(await ask(name)).toMatchObject({ status: 200, sha256: printOf(web) })
    }
  })

  test('presents its own certificate for its own names, for unknown names, and to clients without a server name', async () => {
    for (const name of ['ctrl1.example.org', 'other.example.org', 'apps.example.org', '']) {
      expect(await ask(name), name).toMatchObject({ status: 200, sha256: printOf(own) })
    }
  })

  test('keeps open connections while another certificate with another key takes effect', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const before = await ask('console.example.org', agent)
    const next = await put({})
    servers.reload()
    const standing = await ask('console.example.org', agent)
    expect(standing.socket).toBe(before.socket)
    expect(standing.status).toBe(200)
    expect(await ask('console.example.org')).toMatchObject({ sha256: printOf(next) })
    agent.destroy()
  })
})

describe('A list of server certificates that is changed by a reload', () => {
  test('takes effect immediately, and clears the alarms about files that it no longer contains', async () => {
    const other = { cert: join(dir, 'other.pem'), key: join(dir, 'other.key') }
    const leaf = await leafBy(publicCa, { hosts: ['other.example.org'] })
    writeFileSync(other.cert, leaf.certificatePem)
    writeSecretFile(other.key, leaf.privateKeyPem)
    const kept = await put({})
    servers.reload()
    servers.configure([files, other])
    servers.reload()
    expect(await ask('other.example.org')).toMatchObject({ sha256: printOf(leaf) })
    expect(await ask('console.example.org')).toMatchObject({ sha256: printOf(kept) })

    writeFileSync(other.cert, 'half a certifi')
    servers.reload()
    expect(alarms.at(-1)).toMatch(/^CERTIFICATE_REFUSED /)
    servers.configure([files])
    expect(alarms.slice(-2)).toEqual(['clear CERTIFICATE_REFUSED', 'clear CERTIFICATE_EXPIRES'])
    expect(await ask('other.example.org')).toMatchObject({ sha256: printOf(own) })
    servers.configure([])
    expect(await ask('console.example.org')).toMatchObject({ sha256: printOf(own) })
    servers.stop()
  })
})

describe('The files of a server certificate of a listener', () => {
  test('are used once certificate and key match and have stopped changing, but not while only one of the two is new', async () => {
    const before = servers.all[0]?.leaf?.sha256
    servers.look()
    const next = await leafBy(publicCa, {})
    writeSecretFile(files.key, next.privateKeyPem)
    servers.look()
    servers.look()
    expect(servers.all[0]?.leaf?.sha256).toBe(before)
    expect(alarms).toEqual([expect.stringMatching(/^CERTIFICATE_REFUSED .*does not belong to the/)])
    expect(servers.view()[0]?.refused).toContain('privkey.pem')
    writeFileSync(files.cert, next.certificatePem)
    servers.look()
    servers.look()
    expect(servers.all[0]?.leaf?.sha256).toBe(printOf(next))
    expect(alarms.at(-1)).toBe('clear CERTIFICATE_REFUSED')
    expect(lines.join()).toContain('keeping the current one')
  })

  test.each<[string, string, Partial<LeafOptions>]>([
    ['that have expired', 'it expired at', { validity: { notBeforeMs: 0, notAfterMs: DAY_MS } }],
    ['for clients only', 'lacks serverAuth', { usages: ['client'] }],
    ['whose certificate names no host', 'names no host', { hosts: [] }],
  ])('%s are refused, and the previous files remain in use', async (_what, sentence, changes) => {
    const before = servers.all[0]?.leaf?.sha256
    await put(changes)
    expect(servers.reload().map(({ error }) => String(error))).toEqual([
      expect.stringContaining(sentence),
    ])
    expect(servers.all[0]?.leaf?.sha256).toBe(before)
    expect(alarms.at(-1)).toContain(sentence)
  })

  test('are ignored if they are invalid at the start; then the controller’s certificate is used for their names', async () => {
    await put({ usages: ['client'] })
    servers = serversOf()
    servers.reload()
    expect(await ask('console.example.org')).toMatchObject({ status: 200, sha256: printOf(own) })
    expect(servers.view()).toEqual([
      { path: files.cert, certificate: null, refused: expect.stringContaining('serverAuth') },
    ])
    await put({})
    servers.look()
    servers.look()
    expect(servers.all[0]?.leaf).not.toBeNull()
  })

  test('raise an alarm before they expire', () => {
    nowMs += 70 * DAY_MS
    servers.look()
    expect(alarms).toEqual([
      expect.stringMatching(
        /^CERTIFICATE_EXPIRES the server certificate \S+fullchain\.pem expires within 30 days, at/,
      ),
    ])
  })
})

test('the configuration refuses a server certificate that it lists twice', () => {
  const path = join(dir, 'twice.yml')
  const one = '{ cert: a.pem, key: a.key }'
  writeFileSync(
    path,
    `serverCertificates: [${one}, ${one}]\nidentity: { cert: c.pem, key: c.key, ca: d.pem }
id: a
data: data
trustDomain: net.example
cluster: { bind: "127.0.0.1:1480", advertise: "127.0.0.1:1480" }
web: [{ bind: "127.0.0.1:1280", advertise: "127.0.0.1:1280" }]\n`,
  )
  const loaded = loadControllerConfig(path, {})
  expect(loaded.ok ? [] : loaded.faults.map(({ key, problem }) => `${key} ${problem}`)).toEqual([
    expect.stringMatching(/^serverCertificates\[1\]\.cert is named more than once/),
  ])
})
