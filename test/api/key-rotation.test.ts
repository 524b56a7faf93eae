import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newClusterKey } from '../../src/pki/secrets/cluster-key.ts'
import type { TokenKey } from '../../src/ports/token-keys.ts'
import { CallerOf, management } from './support/caller.ts'
import {
  admin,
  sessionCommand,
  startController,
  type TestController,
} from './support/controller.ts'

// A removed controller knows the previous key and the ID of every session that existed. These tests
// show what it can do with them.

let controller: TestController
let root: CallerOf

beforeEach(async () => {
  controller = await startController()
  root = new CallerOf(controller)
  await root.logIn(admin)
})
afterEach(async () => {
  await controller.close()
  expect(controller.errors).toEqual([])
})

const overlapMs = 30 * 60_000
const services = `${management}/services`
const current = `${management}/current-api-session`
const inOverlap = (): number => controller.clock.nowMs() + overlapMs

function forge(keys: readonly TokenKey[], version: number, sessionId: string): string {
  const key = keys.find((one) => one.version === version)
  if (key === undefined) throw new Error(`no version ${version}`)
  const mac = createHmac('sha256', key.secret).update(sessionId).digest('base64url')
  return `${version}.${sessionId}.${mac}`
}

function sessionIdOf(caller: CallerOf): string {
  return caller.token?.split('.')[1] ?? ''
}

/** Secrets that a removed controller knows. */
function stolen(): { readonly keys: readonly TokenKey[]; readonly token: string } {
  const keys = controller.keys.clusterKeys()
  return { keys, token: forge(keys, 1, sessionIdOf(root)) }
}

async function refuses(address: string, token: string): Promise<void> {
  const thief = new CallerOf(controller)
  thief.token = token
  thief.address = address
  const reply = await thief.get(services)
  expect(reply.status).toBe(401)
  expect(reply.headers['www-authenticate']).toContain('error="invalid"')
}

describe('After a rotation of the key that signs tokens', () => {
  test('older sessions remain valid from the address that opened them', async () => {
    controller.keys.rotate(inOverlap())
    expect((await root.get(services)).status).toBe(200)
    root.address = '::ffff:127.0.0.1'
    expect((await root.get(services)).status, 'the same address at a dual-stack listener').toBe(200)
  })

  test('a token signed with the old key is refused from an address that did not open its session', async () => {
    const { token } = stolen()
    controller.keys.rotate(inOverlap())
    for (const address of ['10.0.0.66', '::1', '::ffff:10.0.0.66', '127.0.0.2']) {
      await refuses(address, token)
    }
  })

  test('a token that was signed with the new key is valid from any address', async () => {
    controller.keys.rotate(inOverlap())
    await root.logIn(admin)
    expect(root.token?.startsWith('2.')).toBe(true)
    root.address = '10.0.0.66'
    expect((await root.get(services)).status).toBe(200)
  })

  test('a session opened under the old key gets no token signed with the new key', async () => {
    controller.keys.rotate(inOverlap())
    const reply = await root.get(current)
    expect((reply.body.data as { token: string }).token).toBe(root.token)
  })

  test('a token signed with the old key is refused from every address once the overlap period ends', async () => {
    const { token } = stolen()
    controller.keys.rotate(controller.clock.nowMs() + 60_000)
    expect((await root.get(services)).status).toBe(200)
    controller.clock.advance(60_000)
    await refuses('127.0.0.1', token)
    await refuses('10.0.0.66', token)
  })

  test('no older token is valid, not even from the address of its session, if the previous key was compromised', async () => {
    const { token } = stolen()
    controller.keys.rotate(null)
    await refuses('127.0.0.1', token)
    expect(controller.cluster.readRounds, 'refused without another round of reads').toBe(1)
  })

  test('a token that is signed with the old key for a newer session is refused from an address that did not open the session, and even from the session’s address if the token claims the new key version', async () => {
    const { keys } = stolen()
    controller.keys.rotate(inOverlap())
    const later = new CallerOf(controller)
    await later.logIn(admin)
    const id = sessionIdOf(later)
    // The attacker would have to know the session's ID (72 random bits), and send requests from its
    // address.
    await refuses('10.0.0.66', forge(keys, 1, id))
    const [, , oldMac] = forge(keys, 1, id).split('.')
    await refuses('127.0.0.1', `2.${id}.${oldMac ?? ''}`)
  })
})

describe('A token with an unknown key version', () => {
  test('is accepted if another controller has just rotated the key and signed the token', async () => {
    const elsewhere = controller.keys.rotateElsewhere(inOverlap())
    controller.cluster.arriving.push(sessionCommand('newSession', 'admin-id'))
    root.token = forge(elsewhere, 2, 'newSession')
    root.address = '10.0.0.66'
    expect((await root.get(services)).status).toBe(200)
    expect(controller.keys.refreshes).toBe(1)
    expect((await root.get(services)).status).toBe(200)
    expect(controller.keys.refreshes, 'the key is known now').toBe(1)
  })

  test('is refused if the cluster does not know the key version', async () => {
    const { keys } = stolen()
    const [, id = '', mac = ''] = forge(keys, 1, sessionIdOf(root)).split('.')
    await refuses('127.0.0.1', `2.${id}.${mac}`)
    await refuses('127.0.0.1', `999999999.${id}.${mac}`)
  })

  test('is answered with 503 while there is no leader', async () => {
    const elsewhere = controller.keys.rotateElsewhere(inOverlap())
    controller.cluster.hasLeader = false
    root.token = forge(elsewhere, 2, sessionIdOf(root))
    const reply = await root.get(services)
    expect([reply.status, reply.body.error?.code]).toEqual([503, 'CLUSTER_NO_LEADER'])
  })

  test('is valid only from the address that opened its session if it turns out to be signed with the previous key', async () => {
    const { keys, token } = stolen()
    controller.keys.set([])
    controller.keys.arrive([
      ...keys.map((key) => ({ ...key, overlapEndsAtMs: inOverlap() })),
      { version: 2, secret: newClusterKey(), overlapEndsAtMs: null, isExposed: false },
    ])
    await refuses('10.0.0.66', token)
    expect(controller.keys.refreshes).toBe(1)
    expect((await root.get(services)).status, 'from the address of the session').toBe(200)
  })
})

describe('Before the state contains a key that signs tokens', () => {
  test('requests with a session token and log-ins get the response 503, and requests with a made-up token or without one get 401', async () => {
    controller.keys.set([])
    const reply = await root.get(services)
    expect([reply.status, reply.body.error?.code]).toEqual([503, 'CLUSTER_NO_LEADER'])
    const proposals = controller.cluster.proposals.length
    const logIn = await new CallerOf(controller).logIn(admin)
    expect([logIn.status, logIn.body.error?.code]).toEqual([503, 'CLUSTER_NO_LEADER'])
    expect(controller.cluster.proposals, 'no session is left behind').toHaveLength(proposals)
    root.token = 'made up'
    expect((await root.get(services)).status).toBe(401)
    root.token = null
    expect((await root.get(services)).status).toBe(401)
  })
})
