import { beforeAll, describe, expect, test, vi } from 'vitest'

import { PostureReports } from '../../src/posture/posture-reports.ts'
import { management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { LocalTopic } from './support/local-topic.ts'
import { atWork, type Device, domain, OidcDevices } from './support/oidc-device.ts'
import { raiseLevel } from './support/raise-level.ts'

// Goal: an OIDC client reports its posture to routers, and controllers check the posture when it
// dials or hosts. Method: a log-in with the authorization code flow, then access requests and
// posture reports as routers send them.

const { controller, root } = await controllerForFile()
const { parts } = controller
const devices = new OidcDevices(controller, root)

beforeAll(() => raiseLevel(controller))

async function sessionsOf({ call }: Device): Promise<number> {
  return ((await call('GET', '/sessions')).body.data as unknown[]).length
}

/** Runs the leader's periodic posture check, after the leader has led for long enough. */
async function sweep(): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    controller.scheduler.run(parts.limits.sweepMs)
    await new Promise((go) => setImmediate(go))
  }
}

const refused = { ok: false, fault: 'posture' }

describe('an OIDC client', () => {
  test('can request a service session before it reports posture, and can dial after it has reported posture to its router', async () => {
    const device = await devices.behind(atWork)
    const token = await devices.openSession(device)
    expect(await devices.dial(device, token)).toMatchObject(refused)
    expect(await devices.clients.report(device.shown, [domain('home')])).toBe(true)
    expect(await devices.dial(device, token)).toMatchObject(refused)
    expect(await devices.clients.report(device.shown, [domain('corp.test')])).toBe(true)
    expect(await devices.dial(device, token)).toMatchObject({ ok: true })
    const services = await device.call('GET', '/services')
    expect(services.text).toContain('"isPassing":true')
  })

  test('is refused a dial if posture checks fail, and operators can see the failed checks', async () => {
    const device = await devices.behind(atWork)
    expect(await devices.dial(device, await devices.openSession(device))).toMatchObject(refused)
    const path = `${management}/identities/${device.id}/failed-service-requests`
    expect((await root.get(path)).body.data).toMatchObject([
      {
        serviceId: device.serviceId,
        sessionType: 'Dial',
        policyFailures: [{ checks: [{ postureCheckType: 'DOMAIN' }] }],
      },
    ])
  })

  test('loses its service session when its device reports to the router that a check fails', async () => {
    const device = await devices.behind(atWork)
    await devices.openSession(device)
    await devices.clients.report(device.shown, [domain('corp.test')])
    await devices.clients.report(device.shown, [domain('home')])
    expect(await sessionsOf(device)).toBe(0)
  })

  test('keeps its service session for a minute without a posture report, and then loses it', async () => {
    const device = await devices.behind(atWork)
    await devices.openSession(device)
    // The leader has led for long enough, and the session is new.
    controller.clock.advance(parts.limits.postureGraceMs)
    await sweep()
    const young = await devices.behind(atWork)
    await devices.openSession(young)
    await sweep()
    expect(await sessionsOf(young)).toBe(1)
    controller.clock.advance(parts.limits.postureGraceMs)
    await sweep()
    expect(await sessionsOf(young)).toBe(0)
  })
})

describe('a router that evaluates posture', () => {
  const isJudgedByRouter = true

  test('is trusted about posture that only the device knows, and only for the current dial', async () => {
    const device = await devices.behind(atWork)
    const token = await devices.openSession(device)
    expect(await devices.dial(device, token, { isJudgedByRouter })).toMatchObject({ ok: true })
    expect(await devices.dial(device, token)).toMatchObject(refused)
  })

  test('prevents the end of its client’s service session until the device reports a change of posture to a controller', async () => {
    const device = await devices.behind(atWork)
    const token = await devices.openSession(device)
    await devices.dial(device, token, { isJudgedByRouter })
    controller.clock.advance(parts.limits.postureGraceMs)
    await sweep()
    expect(await sessionsOf(device)).toBe(1)
    await devices.clients.report(device.shown, [domain('home')])
    expect(await sessionsOf(device)).toBe(0)
    const again = await devices.openSession(device)
    expect(await devices.dial(device, again, { isJudgedByRouter })).toMatchObject({ ok: true })
    await sweep()
    expect(await sessionsOf(device)).toBe(1)
  })

  test('prevents the end of the session also if the device reported earlier to a controller whose reports had not arrived yet', async () => {
    const device = await devices.behind(atWork)
    const elsewhere = new LocalTopic<Uint8Array>('ctrl2')
    const reports = new PostureReports('ctrl2', elsewhere, controller.clock)
    for (const name of ['home', 'cafe']) reports.report(device.id, '', [domain(name)])
    const deliver = (): void =>
      controller.posture.hear('ctrl2', device.id, elsewhere.own.get(device.id))
    const token = await devices.openSession(device)
    controller.onReachLatest = deliver
    try {
      const dialed = await devices.dial(device, token, { isJudgedByRouter })
      expect(dialed).toMatchObject({ ok: true })
    } finally {
      controller.onReachLatest = () => undefined
    }
    deliver()
    controller.clock.advance(parts.limits.postureGraceMs)
    await sweep()
    expect(await sessionsOf(device)).toBe(1)
  })

  test('causes no wait for other controllers at the second dial of its client', async () => {
    const device = await devices.behind(atWork)
    const token = await devices.openSession(device)
    const reached = vi.fn()
    controller.onReachLatest = reached
    try {
      for (let dial = 0; dial < 3; dial += 1) {
        const dialed = await devices.dial(device, token, { isJudgedByRouter })
        expect(dialed).toMatchObject({ ok: true })
      }
    } finally {
      controller.onReachLatest = () => undefined
    }
    expect(reached).toHaveBeenCalledTimes(1)
  })
})
