import { create, toBinary } from '@bufbuild/protobuf'
import { Agent } from 'node:https'
import { describe, expect, test } from 'vitest'

import { ApiSessionHeartbeatSchema } from '../../proto/gen/router_pb.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, fabric, management } from '../api/support/caller.ts'
import { made } from '../api/support/network.ts'
import { settle } from '../channel/pipe.ts'
import {
  attackedByCertificates,
  csrOf,
  dataOf,
  type Device,
  refusal,
} from './support/certificates.ts'
import { raiseToSecondLevel, StolenRouters } from './support/stolen-router.ts'

// The attack: somebody with a stolen edge router, or with one that they enrolled, uses the sessions
// of its clients.

const attacked = await attackedByCertificates()
const { controller, listener, root } = attacked
raiseToSecondLevel(controller)
const routers = new StolenRouters(controller)
let serial = 0

async function newRouterId(rest: object = {}): Promise<string> {
  serial += 1
  return await made(root, `${management}/edge-routers`, { name: `stolen ${serial}`, ...rest })
}

async function newPolicy(identityRoles: string[], edgeRouterRoles: string[]): Promise<string> {
  serial += 1
  const policy = { name: `policy ${serial}`, semantic: 'AnyOf', identityRoles, edgeRouterRoles }
  return await made(root, `${management}/edge-router-policies`, policy)
}

/** A router that a policy permits everybody to use. */
async function newOpenRouter() {
  const id = await newRouterId()
  await newPolicy(['#all'], [`@${id}`])
  return await routers.connect(id)
}

async function patch(path: string, body: object): Promise<void> {
  const reply = await root.call('PATCH', `${management}/${path}`, body)
  expect(reply.status, reply.text).toBe(200)
}

async function logIn(by: CertificateWithKey, base: string = client): Promise<string> {
  const path = `${base}/authenticate?method=cert`
  return String(dataOf(await listener.call({ path, by, body: {} }))['token'])
}

const get = (path: string, token: string, by: CertificateWithKey | null = null) =>
  listener.call({ method: 'GET', path, token, by })
const identities = `${management}/identities`

async function newAdmin(): Promise<Device> {
  const device = await attacked.newDevice()
  await patch(`identities/${device.identityId}`, { isAdmin: true })
  return device
}

describe('the API sessions that a router receives', () => {
  test('belong only to identities that a policy allows to use the router', async () => {
    const [own, other] = [await attacked.newDevice(), await attacked.newDevice()]
    const id = await newRouterId()
    await newPolicy([`@${own.identityId}`], [`@${id}`])
    const before = await logIn(own.key)
    await logIn(other.key)
    const router = await routers.connect(id)
    expect(await router.tokens()).toEqual(new Map([[own.identityId, before]]))
    await logIn(other.key)
    const after = await logIn(own.key)
    expect(await router.tokens()).toEqual(new Map([[own.identityId, after]]))
  })

  test('are, after a change of roles or policies, those that the router may know', async () => {
    const device = await attacked.newDevice()
    const token = await logIn(device.key)
    const id = await newRouterId()
    const policyId = await newPolicy(['#crew'], ['#port'])
    const router = await routers.connect(id)
    const isTold = async () => (await router.tokens()).has(device.identityId)
    const timesLost = async () => (await router.lost()).filter((one) => one === token).length
    expect(await isTold()).toBe(false)
    await patch(`identities/${device.identityId}`, { roleAttributes: ['crew'] })
    expect(await isTold()).toBe(false)
    await patch(`edge-routers/${id}`, { roleAttributes: ['port'] })
    expect(await isTold()).toBe(true)
    expect(await timesLost()).toBe(0)
    await patch(`edge-router-policies/${policyId}`, { identityRoles: ['#others'] })
    expect(await timesLost()).toBe(1)
    await patch(`edge-router-policies/${policyId}`, { identityRoles: ['#all'] })
    await patch(`identities/${device.identityId}`, { roleAttributes: [] })
    expect(await timesLost()).toBe(1)
    await root.call('DELETE', `${management}/edge-router-policies/${policyId}`)
    expect(await timesLost()).toBe(2)
  })

  test('do not include sessions that were opened at the management API', async () => {
    const router = await newOpenRouter()
    const [admin, clerk] = [await newAdmin(), await attacked.newDevice()]
    const tokens = [await logIn(admin.key, management), await logIn(clerk.key, management)]
    expect([...(await router.tokens()).values()]).not.toContain(tokens[0])
    expect([...(await router.tokens()).values()]).not.toContain(tokens[1])
    expect((await get(identities, String(tokens[0]))).status).toBe(200)
  })

  test('no longer include the session of an identity once the identity gets a management permission', async () => {
    const router = await newOpenRouter()
    const device = await attacked.newDevice()
    controller.openSession(device.identityId)
    expect((await router.tokens()).has(device.identityId)).toBe(true)
    await patch(`identities/${device.identityId}`, { permissions: ['config.read'] })
    expect(await router.lost()).toEqual([(await router.tokens()).get(device.identityId)])
  })
})

describe('a client’s session token that a router knows', () => {
  test('gives no management access, even after the client’s identity has become an administrator', async () => {
    const router = await newOpenRouter()
    const device = await attacked.newDevice()
    await logIn(device.key)
    await patch(`identities/${device.identityId}`, { isAdmin: true })
    const token = String((await router.tokens()).get(device.identityId))
    const asked = [identities, `${management}/current-identity`, `${fabric}/routers`]
    for (const by of [null, device.key]) {
      for (const path of asked) {
        expect(await get(path, token, by), path).toMatchObject(refusal(401, 'UNAUTHORIZED'))
      }
    }
    const path = `${management}/identities/${device.identityId}`
    const write = await listener.call({ method: 'PATCH', path, token, body: { name: 'mine' } })
    expect(write).toMatchObject(refusal(401, 'UNAUTHORIZED'))
    expect((await get(`${client}/current-identity`, token, device.key)).status).toBe(200)
  })

  test('is useless at the client API without the key of the client certificate', async () => {
    const router = await newOpenRouter()
    const [device, other] = [await attacked.newDevice(), await attacked.newDevice()]
    await logIn(device.key)
    const token = String((await router.tokens()).get(device.identityId))
    const own = `${client}/current-identity`
    const csr = await csrOf(generatePrivateKeyPem())
    for (const by of [null, other.key]) {
      expect(await get(own, token, by)).toMatchObject(refusal(401, 'UNAUTHORIZED'))
      const path = `${client}/current-api-session/certificates`
      const certificate = await listener.call({ path, token, by, body: { csr } })
      expect(certificate).toMatchObject(refusal(401, 'UNAUTHORIZED'))
      const mfa = await listener.call({ path: `${own}/mfa`, token, by })
      expect(mfa).toMatchObject(refusal(401, 'UNAUTHORIZED'))
    }
    expect((await get(own, token, device.key)).status).toBe(200)
  })

  test('stays valid on the connection over which the client extended its certificate, and requires the new certificate on other connections', async () => {
    const { key: by, authenticatorId } = await attacked.newDevice()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const token = await logIn(by)
    const privateKeyPem = generatePrivateKeyPem()
    const own = `${client}/current-identity`
    const path = `${own}/authenticators/${authenticatorId}`
    const body = { clientCertCsr: await csrOf(privateKeyPem) }
    const asked = { token, by, agent }
    const extended = dataOf(await listener.call({ ...asked, path: `${path}/extend`, body }))
    const clientCert = String(extended['clientCert'])
    const verified = { ...asked, path: `${path}/extend-verify`, body: { clientCert } }
    expect((await listener.call(verified)).status).toBe(200)
    const still = await listener.call({ ...asked, method: 'GET', path: own })
    agent.destroy()
    expect(still.status, still.text).toBe(200)
    expect(await get(own, token, by)).toMatchObject(refusal(401, 'UNAUTHORIZED'))
    const next = { certificatePem: clientCert, privateKeyPem }
    expect((await get(own, token, next)).status).toBe(200)
  })

  test('is accepted at the client API if the client’s identity has no management rights and logged in by password', async () => {
    const router = await newOpenRouter()
    const { identityId } = await attacked.newDevice()
    await made(root, `${management}/authenticators`, {
      method: 'updb',
      identityId,
      username: 'guest',
      password: 'a staple of guest',
    })
    const path = `${client}/authenticate?method=password`
    const body = { username: 'guest', password: 'a staple of guest' }
    expect((await listener.call({ path, body })).status).toBe(200)
    const token = String((await router.tokens()).get(identityId))
    expect((await get(`${client}/current-identity`, token)).status).toBe(200)
    expect(await get(identities, token)).toMatchObject(refusal(401, 'UNAUTHORIZED'))
  })

  test('does not stay valid because of heartbeats from a router that the client’s identity may not use', async () => {
    const [open, closed] = [await newOpenRouter(), await routers.connect(await newRouterId())]
    const device = await attacked.newDevice()
    const token = await logIn(device.key)
    const body = toBinary(
      ApiSessionHeartbeatSchema,
      create(ApiSessionHeartbeatSchema, { tokens: [token] }),
    )
    const [id = ''] = controller.machine
      .findAll('apiSession', 'identityId', device.identityId)
      .map((one) => one.id)
    const isAlive = () => typeof routers.services.sessions.find(id) !== 'string'
    const mostMs = 0.8 * controller.parts.limits.sessionTimeoutMs
    for (const [router, lives, sinceMs] of [
      [open, true, mostMs],
      [closed, false, mostMs / 2],
    ] as const) {
      controller.clock.advance(sinceMs)
      router.pipe.say({ contentType: 20_203, body })
      await settle()
      expect(isAlive()).toBe(true)
      controller.clock.advance(mostMs / 2)
      expect(isAlive()).toBe(lives)
    }
    root.token = controller.openSession('admin-id')
  })
})

test('a caller who may create routers cannot become an administrator with the session tokens that a router receives', async () => {
  const clerk = await attacked.newDevice()
  await patch(`identities/${clerk.identityId}`, { permissions: ['router.create'] })
  const admin = await newAdmin()
  await Promise.all([logIn(admin.key), logIn(admin.key, management)])
  const token = await logIn(clerk.key, management)
  const body = { name: 'of the clerk', roleAttributes: [] }
  const created = await listener.call({ path: `${management}/edge-routers`, token, body })
  const { id } = dataOf(created, 201)
  await newPolicy(['#all'], [`@${String(id)}`])
  const router = await routers.connect(String(id))
  const stolen = String((await router.tokens()).get(admin.identityId))
  for (const by of [null, clerk.key]) {
    const path = `${management}/identities/${clerk.identityId}`
    const asked = { method: 'PATCH', path, token: stolen, by, body: { isAdmin: true } }
    expect(await listener.call(asked)).toMatchObject(refusal(401, 'UNAUTHORIZED'))
  }
})
