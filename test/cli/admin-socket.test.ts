import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  AdminSocketError,
  type AdminSocketRequest,
  sendToAdminSocket,
  streamFromAdminSocket,
} from '../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../src/cli/client/connection.ts'
import { adminSocketAddress } from '../../src/controller/admin/socket-address.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import { fabric, management } from '../api/support/caller.ts'
import { answerTo, WebSocketClient } from '../events/web-socket-client.ts'
import { eventually } from '../support/eventually.ts'
import { type ServedSocket, serveSocket } from './served-socket.ts'

// Goal: a user who may open the socket can use the API there; any other user gets the reason in one
// sentence.

let folder = ''
let server: ServedSocket

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-admin-'))
  server = await serveSocket(folder)
})
afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

async function faultOf(asked: Promise<unknown>): Promise<AdminSocketError> {
  try {
    await asked
  } catch (error) {
    if (error instanceof AdminSocketError) return error
    throw error
  }
  throw new Error('it was answered')
}

const codeOf = async (asked: Promise<unknown>): Promise<string> => (await faultOf(asked)).code
const get = (path: string): AdminSocketRequest => ({ method: 'GET', path })
const post = (path: string, body?: object): AdminSocketRequest => ({ method: 'POST', path, body })

/** Sends bytes, and returns everything that arrives until the server closes the connection. */
function exchange(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(join(folder, 'admin.sock'))
    let text = ''
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.write(bytes)
  })
}

/** Sends a request with other headers than the program would. */
function statusWith(headers: Record<string, string>, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: join(folder, 'admin.sock'), path, headers }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    asked.on('error', reject)
    asked.end()
  })
}

/** Name of the caller in the last line of the audit log. */
async function lastActor(): Promise<string> {
  const filter = encodeURIComponent('sort by index desc')
  const rows = await sendToAdminSocket(folder, get(`${fabric}/audit?filter=${filter}`))
  return (rows as { readonly actor: { readonly name: string } }[])[0]?.actor.name ?? ''
}

test('the admin socket responds like the API, is readable only by its owner, and is removed when the controller stops', async () => {
  expect(statSync(join(folder, 'admin.sock')).mode & 0o777).toBe(0o600)
  const status = (await sendToAdminSocket(
    folder,
    clusterOperationRequest('status'),
  )) as ClusterStatus
  expect(status.members[0]).toMatchObject({ id: 'ctrl1', address: 'localhost:1480' })
  const created = post(`${management}/services`, { name: 'wiki', encryptionRequired: true })
  const { id } = (await sendToAdminSocket(folder, created)) as { readonly id: string }
  expect(await sendToAdminSocket(folder, get(`${management}/services/${id}`))).toMatchObject({
    name: 'wiki',
  })
  await server.close()
  expect(existsSync(join(folder, 'admin.sock'))).toBe(false)
})

test('a refusal at the admin socket has its code and reason, and is not logged as an error', async () => {
  const { controller } = server
  controller.cluster.hasLeader = false
  const body = { name: 'wiki', encryptionRequired: true }
  expect(await codeOf(sendToAdminSocket(folder, post(`${management}/services`, body)))).toBe(
    'CLUSTER_NO_LEADER',
  )
  const invalid = await faultOf(sendToAdminSocket(folder, post(`${fabric}/pki/issue`, {})))
  expect([invalid.code, invalid.message]).toEqual([
    'COULD_NOT_VALIDATE',
    expect.stringContaining('required'),
  ])
  expect(await codeOf(sendToAdminSocket(folder, get(`${fabric}/no-such`)))).toBe('NOT_FOUND')
  expect(controller.errors).toEqual([])
})

test('the admin socket serves cluster operations while the state is quarantined', async () => {
  const { controller } = server
  controller.refusal = 'NODE_QUARANTINED'
  expect(await sendToAdminSocket(folder, clusterOperationRequest('status'))).toMatchObject({
    selfId: 'ctrl1',
  })
  await sendToAdminSocket(
    folder,
    clusterOperationRequest('transfer-leadership', { newLeaderId: 'ctrl2' }),
  )
  expect(controller.transfers).toEqual(['ctrl2'])
  expect(await codeOf(sendToAdminSocket(folder, get(`${management}/services`)))).toBe(
    'NODE_QUARANTINED',
  )
})

test('the admin socket refuses operations on the caller’s session unless the request has a session', async () => {
  const path = `${management}/current-identity`
  const refused = await faultOf(sendToAdminSocket(folder, get(path)))
  expect(refused.message).toContain('the admin socket has none')
  const session = server.controller.openSession('alice-id')
  expect(await statusWith({ 'net-session': session }, path)).toBe(200)
})

test('a caller that sends a session to the admin socket has only the rights of that session', async () => {
  const session = server.controller.openSession('alice-id')
  expect(await statusWith({ 'net-session': session }, `${fabric}/cluster/status`)).toBe(401)
  expect(await statusWith({ 'net-session': 'made up' }, `${fabric}/cluster/status`)).toBe(401)
  expect(await statusWith({}, `${fabric}/cluster/status`)).toBe(200)
})

test('a client of the admin socket reports a controller that is stopped or does not respond', async () => {
  const none = join(folder, 'none')
  expect(await codeOf(sendToAdminSocket(none, clusterOperationRequest('status')))).toBe(
    'NOT_RUNNING',
  )
  const silent = join(folder, 'silent')
  mkdirSync(silent)
  const listening = createServer(() => undefined).listen(join(silent, 'admin.sock'))
  try {
    expect(await codeOf(sendToAdminSocket(silent, clusterOperationRequest('status', {}, 50)))).toBe(
      'NO_ANSWER',
    )
    const stream = streamFromAdminSocket(silent, { path: `${fabric}/cluster/backup` }, 50)
    expect(await codeOf(stream.next())).toBe('NO_ANSWER')
  } finally {
    listening.close()
  }
})

test('a controller replaces an admin socket that a killed process left behind', async () => {
  // A second server on the same path, as after a crash: the owner of the folder's lock may replace
  // the socket.
  const second = await serveSocket(folder)
  expect(await sendToAdminSocket(folder, clusterOperationRequest('status'))).toMatchObject({
    selfId: 'ctrl1',
  })
  await second.close()
})

test('the admin socket works in a data folder whose path exceeds the maximum length of a socket path', async () => {
  const deep = join(folder, ...Array.from({ length: 8 }, () => 'x'.repeat(30)))
  mkdirSync(deep, { recursive: true })
  const served = await serveSocket(deep)
  expect(statSync(join(deep, 'admin.sock')).mode & 0o777).toBe(0o600)
  expect(await sendToAdminSocket(deep, clusterOperationRequest('status'))).toMatchObject({
    selfId: 'ctrl1',
  })
  const address = adminSocketAddress(deep)
  expect(Buffer.byteLength(address.path)).toBeLessThan(108)
  address.release()
  await served.close()
})

test('a stream over the admin socket arrives complete, or fails', async () => {
  const { backups, errors } = server.controller
  const read = async (): Promise<string> => {
    let text = ''
    for await (const chunk of streamFromAdminSocket(folder, { path: `${fabric}/cluster/backup` })) {
      text += Buffer.from(chunk).toString()
    }
    return text
  }
  expect(await read()).toBe('the first half, the second half')
  backups.failure = new Problem('NODE_QUARANTINED')
  expect(await codeOf(read())).toBe('NO_ANSWER')
  expect(errors.splice(0)).toEqual([expect.stringContaining('cut off before its end')])
  backups.failure = null
  expect(await read()).toBe('the first half, the second half')
})

test('the admin socket streams events until it closes', async () => {
  const asked = request({
    socketPath: join(folder, 'admin.sock'),
    path: `${fabric}/events`,
    headers: { accept: 'text/event-stream' },
  })
  asked.end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  let told = ''
  answer.on('data', (chunk: Buffer) => (told += chunk.toString()))
  answer.on('error', () => undefined)
  await eventually(() => expect(told).toContain('event: ready'))
  const body = { name: 'wiki', encryptionRequired: true }
  await sendToAdminSocket(folder, post(`${management}/services`, body))
  await eventually(() => expect(told).toContain('wiki'))
  const ended = new Promise((done) => answer.on('close', done))
  await server.close()
  await ended
})

test('the admin socket opens a web socket for events without a session, but not with an invalid session', async () => {
  const path = join(folder, 'admin.sock')
  const forged = new WebSocketClient({ path }, 'forged')
  await eventually(() => expect(forged.head).toContain('HTTP/1.1 401'))
  const follower = new WebSocketClient({ path }, null)
  await eventually(() => expect(follower.head).toContain('HTTP/1.1 101'))
  follower.ask({ format: 'json', subscriptions: [{ type: 'entityChange' }] })
  expect(await answerTo(follower)).toEqual({ isSuccess: true, text: 'success' })
  const body = { name: 'wiki', encryptionRequired: true }
  await sendToAdminSocket(folder, post(`${management}/services`, body))
  await eventually(() => expect(JSON.stringify(follower.events)).toContain('wiki'))
  await server.close()
  await eventually(() => expect(follower.isClosed).toBe(true))
})

test('the audit records the controller’s user or root as the caller at the admin socket, even if the request claims another user', async () => {
  const { uid, username } = userInfo()
  const { controller } = server
  const path = `${management}/services`
  await sendToAdminSocket(folder, post(path, { name: 'by the program', encryptionRequired: true }))
  expect(await lastActor()).toBe(`uid:${uid} (${username})`)
  const claims = [
    ['0 root', 'uid:0 (root)'],
    ['4711 somebody-else', `uid:${uid} (${username})`],
    [`${uid} a "quoted" name`, `uid:${uid} (${username})`],
    ['nonsense', `uid:${uid} (${username})`],
    [null, `uid:${uid} (${username})`],
  ] as const
  for (const [caller, expected] of claims) {
    const body = JSON.stringify({ name: `by ${caller ?? 'nobody'}`, encryptionRequired: true })
    await exchange(
      [
        `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json`,
        `content-length: ${Buffer.byteLength(body)}`,
        ...(caller === null ? [] : [`flotilla-caller: ${caller}`]),
        `\r\n${body}`,
      ].join('\r\n'),
    )
    expect(await lastActor()).toBe(expected)
  }
  expect(controller.errors).toEqual([])
})

test('the admin socket answers a program of an earlier release in the format of that release, and names the version of the controller', async () => {
  const answer = await exchange('{"verb":"status","params":{},"caller":{"uid":0,"name":"root"}}\n')
  expect(JSON.parse(answer)).toEqual({
    ok: false,
    code: 'OTHER_VERSION',
    message: 'this controller runs version v1.2.3; use its own flotilla',
  })
})

test('a client of the admin socket reports a response that is not HTTP as a response of another version', async () => {
  const earlier = join(folder, 'earlier')
  mkdirSync(earlier)
  const listening = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write('{"ok":false,"code":"BAD_REQUEST"}\n'))
  }).listen(join(earlier, 'admin.sock'))
  try {
    const expected =
      'this controller does not answer in HTTP, as version 0.1.0 does not; use its own flotilla'
    const fault = await faultOf(sendToAdminSocket(earlier, clusterOperationRequest('status')))
    expect([fault.code, fault.message]).toEqual(['OTHER_VERSION', expected])
    const stream = streamFromAdminSocket(earlier, { path: `${fabric}/cluster/backup` })
    expect((await faultOf(stream.next())).message).toBe(expected)
  } finally {
    listening.close()
  }
})
