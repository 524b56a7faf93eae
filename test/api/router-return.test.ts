import { expect, test } from 'vitest'

import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { noRouterStatuses } from '../../src/ports/router-status.ts'
import { type CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { made, newIdentity, newService, shown } from './support/network.ts'

// Goal: clients that return after an outage of all controllers get a router that they can reach in
// their first service session, although the routers return at the same time as the clients.

const { controller, root, sessionOf } = await controllerForFile({
  routerReturnMs: 60_000,
  routerReturnWaitMs: 5000,
  routerReportWaitMs: 16_000,
  // So short that each waiting request checks its routers again before another request is answered.
  routerReturnPollMs: 1,
  routerReturnWaitersMax: 2,
})

const reported = new Map<string, { hostname: string; protocols: Record<string, string> }>()
controller.machine.routers = {
  ...noRouterStatuses,
  of: (id) => {
    const status = reported.get(id)
    const version = { version: 'v1', revision: '', buildDate: '', os: '', arch: '' }
    const none = { capabilities: [], linkListeners: [], interfaces: [] }
    return status === undefined ? null : { ...status, version, ...none }
  },
}

/** A service that a new identity may dial through the edge routers with the attribute. */
async function dialer(attribute: string): Promise<{ caller: CallerOf; serviceId: string }> {
  const identityId = await newIdentity(root, `client of ${attribute}`)
  const serviceId = await newService(root, `service of ${attribute}`)
  const [identityRoles, serviceRoles] = [[`@${identityId}`], [`@${serviceId}`]]
  const [semantic, edgeRouterRoles] = ['AnyOf', [`#${attribute}`]]
  const policy = { name: attribute, semantic }
  await made(root, `${management}/service-policies`, {
    ...policy,
    type: 'Dial',
    identityRoles,
    serviceRoles,
  })
  await made(root, `${management}/edge-router-policies`, {
    ...policy,
    identityRoles,
    edgeRouterRoles,
  })
  await made(root, `${management}/service-edge-router-policies`, {
    ...policy,
    serviceRoles,
    edgeRouterRoles,
  })
  return { caller: sessionOf(identityId), serviceId }
}

async function newRouter(name: string, attribute: string): Promise<string> {
  return made(root, `${management}/edge-routers`, { name, roleAttributes: [attribute] })
}

async function enrolledRouter(name: string, attribute: string): Promise<string> {
  const id = await newRouter(name, attribute)
  const { enrollmentToken: token } = await shown(root, `${management}/edge-routers/${id}`)
  const [clientCsr, serverCsr] = await Promise.all(
    [id, name].map((subject) =>
      createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: subject }),
    ),
  )
  const enrolled = await root.call('POST', `${client}/enroll/erott`, {
    token,
    clientCsr,
    serverCsr,
  })
  expect(enrolled.status, enrolled.text).toBe(200)
  return id
}

/** Sends a request for a service session; the result shows whether it has been answered. */
function open({ caller, serviceId }: { caller: CallerOf; serviceId: string }): {
  readonly routers: Promise<readonly unknown[]>
  isAnswered(): boolean
} {
  let isAnswered = false
  const routers = caller
    .call('POST', `${client}/sessions`, { serviceId, type: 'Dial' })
    .then((reply) => {
      isAnswered = true
      expect(reply.status, reply.text).toBe(201)
      const { edgeRouters } = reply.body.data as { edgeRouters: { name: string; urls: unknown }[] }
      return edgeRouters.map(({ name, urls }) => ({ name, urls }))
    })
  return { routers, isAnswered: () => isAnswered }
}

/**
 * Opens service sessions that need not wait for a router, so that any other request that does not
 * wait is answered first.
 */
async function otherSessions(): Promise<void> {
  for (let count = 0; count < 3; count += 1) await open(other).routers
}

const other = await dialer('nothing')
await newRouter('of-nothing', 'nothing')

test('a controller delays the response with a new service session until a router that the client may use has reported its address', async () => {
  const who = await dialer('returning')
  const router = await enrolledRouter('returns', 'returning')
  const opened = open(who)
  await otherSessions()
  reported.set(router, { hostname: '', protocols: {} })
  await otherSessions()
  expect(opened.isAnswered()).toBe(false)
  const protocols = { tls: 'tls://r1:3022' }
  reported.set(router, { hostname: 'r1', protocols })
  expect(await opened.routers).toEqual([{ name: 'returns', urls: protocols }])
  expect(await open(who).routers).toEqual([{ name: 'returns', urls: protocols }])
})

test('a controller does not delay the response with a new service session for a router that cannot serve the client', async () => {
  const who = await dialer('hopeless')
  await newRouter('never-enrolled', 'hopeless')
  const disabled = await enrolledRouter('disabled', 'hopeless')
  const url = `${management}/edge-routers/${disabled}`
  expect((await root.call('PATCH', url, { disabled: true })).status).toBe(200)
  const linksOnly = await enrolledRouter('links-only', 'hopeless')
  reported.set(linksOnly, { hostname: 'r2', protocols: {} })
  const names = (await open(who).routers).map((router) => (router as { name: string }).name)
  expect(names.sort()).toEqual(['disabled', 'links-only', 'never-enrolled'])
})

test('the response with a new service session waits longer for a router that is connected and has not reported its address yet', async () => {
  const who = await dialer('late')
  const router = await enrolledRouter('reports-late', 'late')
  reported.set(router, { hostname: '', protocols: {} })
  const opened = open(who)
  await otherSessions()
  controller.clock.advance(5000)
  await otherSessions()
  controller.clock.advance(5000)
  await otherSessions()
  expect(opened.isAnswered()).toBe(false)
  const protocols = { tls: 'tls://r3:3022' }
  reported.set(router, { hostname: 'r3', protocols })
  expect(await opened.routers).toEqual([{ name: 'reports-late', urls: protocols }])

  const silent = await enrolledRouter('never-reports', 'late')
  reported.set(silent, { hostname: '', protocols: {} })
  reported.delete(router)
  const given = open(who)
  await otherSessions()
  controller.clock.advance(15_000)
  await otherSessions()
  expect(given.isAnswered()).toBe(false)
  controller.clock.advance(1000)
  const without = await given.routers
  expect(without).toHaveLength(2)
  expect(without).toContainEqual({ name: 'never-reports', urls: {} })
})

test('the number of delayed responses with new service sessions and the duration of each delay are limited', async () => {
  const who = await dialer('away')
  await enrolledRouter('away', 'away')
  const away = [{ name: 'away', urls: {} }]
  const waiting = [open(who), open(who)]
  await otherSessions()
  expect(await open(who).routers).toEqual(away)
  expect(waiting.map((one) => one.isAnswered())).toEqual([false, false])
  controller.clock.advance(5000)
  expect(await Promise.all(waiting.map((one) => one.routers))).toEqual([away, away])
  controller.clock.advance(55_000)
  expect(await open(who).routers).toEqual(away)
})
