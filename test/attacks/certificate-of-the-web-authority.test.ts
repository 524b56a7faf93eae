import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createApi } from '../../src/api/server.ts'
import { parseControllerConfig } from '../../src/config/controller/load.ts'
import { ServerCertificates } from '../../src/controller/service/server-certificates.ts'
import { HttpsListeners } from '../../src/controller/service/listeners.ts'
import { openTlsPorts } from '../../src/controller/service/ports.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import { externalSpiffeId } from '../../src/pki/spiffe.ts'
import { startController, type TestController } from '../api/support/controller.ts'
import { newCa } from '../support/authorities.ts'
import { freePort } from '../support/ports.ts'

// The attack: the controller presents a certificate of a public authority to browsers. Anybody can
// get certificates of that authority: for clients, to log in or read metrics, and for names like
// those of the controller.

const DAY_MS = 24 * 60 * 60_000
const CONSOLE = 'console.example.org'
const ENROLLING = 'ctrl1.example.org'

const dir = mkdtempSync(join(tmpdir(), 'flotilla-web-authority-'))
let controller: TestController
let listeners: HttpsListeners
let publicCa: CertificateWithKey
let own: CertificateWithKey
let port = 0

beforeAll(async () => {
  controller = await startController()
  const nowMs = controller.clock.nowMs()
  publicCa = await newCa('a public authority', nowMs)
  own = await leaf(controller.authorities.issuing, 'ctrl1', [ENROLLING])
  // The certificate contains more names than that of the console: because of a wildcard that is
  // used for other hosts, or a mistake.
  const web = await leaf(publicCa, 'console', [CONSOLE, '*.example.org'])
  const files = { cert: join(dir, 'web.pem'), key: join(dir, 'web.key') }
  writeFileSync(files.cert, web.certificatePem + publicCa.certificatePem)
  writeSecretFile(files.key, web.privateKeyPem)
  const chain = parseCertificates(own.certificatePem)
  const silent = { raise: () => undefined, clear: () => undefined }
  const log = { info: () => undefined, error: () => undefined }
  const servers = new ServerCertificates({
    files: [files],
    alarms: silent,
    clock: controller.clock,
    log: log as never,
    ownLeaf: () => chain[0],
  })
  expect(servers.reload()).toEqual([])
  port = await freePort()
  const text = `id: ctrl1
data: data
trustDomain: test.internal
identity: { cert: cert.pem, key: key.pem, ca: ca.pem }
cluster: { bind: "127.0.0.1:1480", advertise: "${ENROLLING}:1480" }
web: [{ bind: "127.0.0.1:${port}", advertise: "${ENROLLING}:${port}" }]
`
  const loaded = parseControllerConfig(join(dir, 'config.yml'), text, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
  const caPem = controller.authorities.anchorsPem()
  const credentials = { ...own, caPem, signerCaPem: '', chain }
  const api = createApi(controller.parts)
  listeners = await HttpsListeners.open({
    api,
    config: loaded.config,
    credentials,
    ports: await openTlsPorts(loaded.config, { warn: () => undefined }),
    byName: (name) => servers.contextFor(name),
  })
})
afterAll(async () => {
  await listeners.close()
  await controller.close()
  rmSync(dir, { recursive: true, force: true })
})

function leaf(
  issuer: CertificateWithKey,
  commonName: string,
  hosts: readonly string[],
  uris: readonly string[] = [],
): Promise<CertificateWithKey> {
  const validity = validityStartingAt(controller.clock.nowMs(), DAY_MS)
  return issueLeaf({ issuer, commonName, uris, hosts, usages: ['server', 'client'], validity })
}

interface Answer {
  readonly status: number
  readonly text: string
  readonly sha256: string
}

function ask(
  method: string,
  path: string,
  name: string,
  by: CertificateWithKey | null,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request({
      host: '127.0.0.1',
      port,
      method,
      path,
      servername: name,
      agent: false,
      rejectUnauthorized: false,
      headers: { 'content-type': 'application/json' },
      ...(by === null ? {} : { cert: by.certificatePem, key: by.privateKeyPem }),
    })
    asked.on('error', reject)
    asked.on('response', (answer) => {
      const { fingerprint256 = '' } = (answer.socket as TLSSocket).getPeerX509Certificate() ?? {}
      const sha256 = fingerprint256.replaceAll(':', '').toLowerCase()
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: answer.statusCode ?? 0, text, sha256 })
      })
    })
    asked.end(method === 'POST' ? '{}' : undefined)
  })
}

test('a client certificate issued by the web CA cannot read metrics, even with the names of a monitoring client', async () => {
  const monitor = await leaf(publicCa, 'prometheus', [], [externalSpiffeId('test.internal')])
  for (const name of [CONSOLE, ENROLLING]) {
    expect((await ask('GET', '/metrics', name, monitor)).status, name).toBe(401)
  }
})

test('a certificate issued by the web CA is not accepted for an identity, controller or router', async () => {
  const path = '/edge/client/v1/authenticate?method=cert'
  for (const id of ['identity/admin', 'controller/ctrl1', 'router/gate']) {
    const by = await leaf(publicCa, id.split('/')[1] ?? '', [], [`spiffe://test.internal/${id}`])
    expect((await ask('POST', path, CONSOLE, by)).status, id).toBe(401)
  }
})

test('a client that requests the controller’s own host name gets the controller’s own certificate, even if the web certificate contains this name', async () => {
  const [{ sha256 }] = parseCertificates(own.certificatePem)
  expect(await ask('GET', '/edge/client/v1/version', ENROLLING, null)).toMatchObject({ sha256 })
  const other = await ask('GET', '/edge/client/v1/version', CONSOLE, null)
  expect(other.sha256).not.toBe(sha256)
})

test('a client that enrolls through the console receives the CA certificates of the network, but not that of the web CA', async () => {
  const { status, text } = await ask('GET', '/.well-known/est/cacerts', CONSOLE, null)
  expect(status).toBe(200)
  const der = Buffer.from(text.replaceAll(/\s/g, ''), 'base64')
  const contains = (pem: string): boolean =>
    der.includes(Buffer.from(parseCertificates(pem)[0].der))
  expect(contains(controller.authorities.anchorsPem())).toBe(true)
  expect(contains(publicCa.certificatePem)).toBe(false)
})
