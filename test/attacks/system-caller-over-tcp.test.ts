import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeEach, expect, test } from 'vitest'

import { createApi } from '../../src/api/server.ts'
import { actorFromCallerHeader } from '../../src/controller/admin/caller.ts'
import { AdminSocket } from '../../src/controller/admin/socket.ts'
import { actorName } from '../../src/ports/actor.ts'
import { fabric, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The attack: a network caller poses as the user of the controller's host, who needs no session: by
// values in a request, by a connection without a peer address, or through a program that forwards
// requests to the admin socket.

const { controller, root } = await controllerForFile()
const folder = mkdtempSync(join(tmpdir(), 'flotilla-system-'))
const api = createApi(controller.parts)
const app = api.listener({ apis: ['client', 'management', 'fabric', 'host'], https: null })
await app.listen({ host: '127.0.0.1', port: 0 })
const socket = await AdminSocket.open(api, folder, 'v1.2.3')
const { port } = app.server.address() as AddressInfo

/**
 * A proxy of an operator who forwards requests to the admin socket and assumes that the controller
 * checks them.
 */
const proxy = createServer(({ method, url, headers }, response) => {
  const forwarded = request(
    { socketPath: join(folder, 'admin.sock'), method, path: url, headers },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502)
      answer.pipe(response)
    },
  )
  forwarded.end()
})
proxy.listen(0, '127.0.0.1')
await once(proxy, 'listening')

afterAll(async () => {
  proxy.closeAllConnections()
  proxy.close()
  await socket.close()
  await app.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  root.token = controller.openSession('admin-id')
})

function statusOf(to: number, path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port: to, path, headers }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    asked.on('error', reject)
    asked.end()
  })
}

test('no header gives a caller over TCP the rights of the host user', async () => {
  const status = `${fabric}/cluster/status`
  for (const name of [
    'flotilla-caller',
    'x-flotilla-caller',
    'x-forwarded-user',
    'x-remote-user',
    'authorization',
  ]) {
    for (const value of ['0 root', 'uid:0 (root)', `${process.getuid?.() ?? 0} admin`]) {
      expect(await statusOf(port, status, { [name]: value }), `${name}: ${value}`).toBe(401)
    }
  }
  for (const [name, value] of [
    ['x-forwarded-for', ''],
    ['x-forwarded-for', 'unix:'],
    ['forwarded', 'for=unix'],
    ['x-real-ip', join(folder, 'admin.sock')],
    ['host', 'unix'],
    ['host', ''],
  ] as const) {
    expect([400, 401], `${name}: ${value}`).toContain(
      await statusOf(port, status, { [name]: value }),
    )
  }
})

test('a connection without peer credentials, for example because it was reset immediately, has no rights of a host user', async () => {
  const body = JSON.stringify({ name: 'by nobody', encryptionRequired: true })
  const before = controller.machine.digests().entities
  const [server, attacker] = duplexPair()
  app.server.emit('connection', server)
  attacker.end(
    [
      `POST ${management}/services HTTP/1.1\r\nhost: x\r\nconnection: close`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ].join('\r\n'),
  )
  expect(await text(attacker)).toMatch(/^HTTP\/1\.1 401 /)
  expect(controller.machine.digests().entities).toBe(before)
})

test('a request with a session header that a proxy forwards to the admin socket does not get the host user’s rights', async () => {
  const { port: proxied } = proxy.address() as AddressInfo
  const status = `${fabric}/cluster/status`
  const session = controller.openSession('alice-id')
  for (const header of ['net-session', 'zt-session']) {
    expect(await statusOf(proxied, status, { [header]: session })).toBe(401)
    expect(await statusOf(proxied, status, { [header]: 'made up' })).toBe(401)
    expect(await statusOf(proxied, status, { [header]: '' })).toBe(401)
  }
})

test('an administrator over TCP cannot use the operations that only the admin socket has', async () => {
  const asked = { requestPem: 'x', hosts: ['bank.example'], usages: ['server'], days: 9 }
  const reply = await root.call('POST', `${fabric}/pki/issue`, asked)
  expect(reply.status).toBe(403)
  expect((await root.call('POST', `${fabric}/cluster/backup`, {})).status).toBe(403)
  expect([controller.pki.asked, controller.backups.asked]).toEqual([[], []])
})

test('a caller at the admin socket cannot claim to be another user', () => {
  const own = { uid: 1000, name: 'op' }
  for (const claimed of ['4711 somebody', '1 daemon', '-1 x', 'NaN x', '1e3 x', ['0 root']]) {
    expect(actorName(actorFromCallerHeader(claimed, own))).toBe('uid:1000 (op)')
  }
})
