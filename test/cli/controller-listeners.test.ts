import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:https'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { createApi } from '../../src/api/server.ts'
import { HttpsListeners } from '../../src/controller/service/listeners.ts'
import { openTlsPorts } from '../../src/controller/service/ports.ts'
import { runPreflight } from '../../src/controller/start/preflight.ts'
import type { Credentials } from '../../src/controller/start/check-certificates.ts'
import { loadControllerConfig } from '../../src/config/controller/load.ts'
import { assert, requirePresent } from '../../src/lib/assert.ts'
import { issueLeaf, validityStartingAt } from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { startController } from '../api/support/controller.ts'
import { layOut } from './support.ts'

let folder = ''
let stops: (() => unknown)[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-listeners-'))
  stops = []
})
afterEach(async () => {
  for (const stop of stops.reverse()) await stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Seen {
  readonly status: number
  readonly socket: Socket
  /** SHA-256 of the server's certificate; null on a reused connection, where Node reports none. */
  readonly fingerprint: string | null
}

function get(host: string, port: number, ca: string, agent: Agent | undefined): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path: '/version', ca, agent }, (response) => {
      const { socket, statusCode: status = 0 } = response
      assert(socket instanceof TLSSocket, 'the connection is encrypted')
      const fingerprint = socket.getPeerX509Certificate()?.fingerprint256 ?? null
      response.resume().once('end', () => resolve({ status, socket, fingerprint }))
    })
    sent.once('error', reject)
    sent.end()
  })
}

test('new connections use a renewed certificate, while existing connections and their requests continue', async () => {
  const plan = await layOut(folder, 2)
  const [first, second] = plan.controllers
  const config = requirePresent(first, 'ctrl1')
  // A name with two addresses: the listener has two servers, and both must change.
  const bind = `localhost:${config.webPort}`
  const loaded = loadControllerConfig(config.configPath, { FLOTILLA_WEB_0_BIND: bind })
  assert(loaded.ok, 'the configuration is good')
  const credentials = async (): Promise<Credentials> => {
    const report = await runPreflight(loaded.config, Date.now())
    return requirePresent(report.credentials, report.faults.join())
  }
  const before = await credentials()
  const controller = await startController()
  stops.push(() => controller.close())
  const listeners = await HttpsListeners.open({
    api: createApi(controller.parts),
    config: loaded.config,
    credentials: before,
    ports: await openTlsPorts(loaded.config, { warn: () => undefined }),
  })
  stops.push(() => listeners.close())
  const ca = readFileSync(join(plan.dir, 'ca.pem'), 'utf8')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  stops.push(() => agent.destroy())

  const standing = await get('localhost', config.webPort, ca, agent)
  // Another leaf certificate of the same cluster: TLS cannot distinguish it from a renewed one.
  for (const name of ['cert.pem', 'controller.key']) {
    const own = requirePresent(second, 'ctrl2').configPath.replace('config.yml', name)
    cpSync(own, join(folder, name))
  }
  const after = {
    certificatePem: readFileSync(join(folder, 'cert.pem'), 'utf8'),
    privateKeyPem: readFileSync(join(folder, 'controller.key'), 'utf8'),
  }
  const underWay = get('localhost', config.webPort, ca, agent)
  listeners.renew(after)

  const seen = await underWay
  const again = await get('localhost', config.webPort, ca, agent)
  expect([standing.status, seen.status, again.status]).toEqual([200, 200, 200])
  expect(seen.socket === standing.socket && again.socket === standing.socket).toBe(true)
  expect(again.socket.destroyed).toBe(false)
  const hosts = ['localhost', '127.0.0.1']
  const fresh = await Promise.all(
    hosts.map((host) => get(host, config.webPort, ca, new Agent({ keepAlive: false }))),
  )
  expect(fresh.map(({ status }) => status)).toEqual([200, 200])
  const fingerprintOf = (pem: string): string => parseCertificates(pem)[0].native.fingerprint256
  expect(standing.fingerprint).toBe(fingerprintOf(before.certificatePem))
  const renewed = fingerprintOf(after.certificatePem)
  expect(fresh.map(({ fingerprint }) => fingerprint)).toEqual([renewed, renewed])

  // Both the first and the renewed TLS context request a client certificate.
  const shown = await issueLeaf({
    issuer: controller.authorities.issuing,
    commonName: 'prometheus',
    hosts: [],
    uris: ['spiffe://test.internal/external'],
    usages: ['client'],
    validity: validityStartingAt(controller.clock.nowMs(), 60_000),
  })
  const metrics = async (cert?: { cert: string; key: string }) =>
    await new Promise((resolve, reject) => {
      request({
        host: 'localhost',
        port: config.webPort,
        path: '/metrics',
        ca,
        agent: false,
        ...cert,
      })
        .on('response', (answer) => resolve(answer.resume().statusCode))
        .on('error', reject)
        .end()
    })
  expect(await metrics()).toBe(401)
  expect(await metrics({ cert: shown.certificatePem, key: shown.privateKeyPem })).toBe(200)
})
