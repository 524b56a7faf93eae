import { beforeAll, describe, expect, test } from 'vitest'

import { client, management } from '../../api/support/caller.ts'
import { controllerForFile } from '../../api/support/for-file.ts'
import { turnOnMfa } from '../../api/support/mfa.ts'
import {
  atWork,
  certificateBy,
  type Device,
  domain,
  OidcDevices,
} from '../../api/support/oidc-device.ts'
import { raiseLevel } from '../../api/support/raise-level.ts'

// The attack: a stolen router reports posture that clients' devices have not reported, or results
// of checks that it may not report.

const { controller, root, sessionOf } = await controllerForFile()
const devices = new OidcDevices(controller, root)

beforeAll(() => raiseLevel(controller))

const refused = { ok: false, fault: 'posture' }

describe('A router that no policy permits for the client', () => {
  test('cannot report posture for the client', async () => {
    const device = await devices.behind(atWork)
    const routerId = await devices.create('edge-routers', {})
    expect(await devices.clients.report({ ...device.shown, routerId }, [domain('corp.test')])).toBe(
      false,
    )
    const noCertificate = { ...device.shown, fingerprints: [] }
    expect(await devices.clients.report(noCertificate, [domain('corp.test')])).toBe(false)
    expect(await devices.dial(device, await devices.openSession(device))).toMatchObject(refused)
  })
})

describe('a router that claims to evaluate posture', () => {
  const isJudgedByRouter = true

  test('is not trusted about an MFA check, which passes only after a controller has verified a code', async () => {
    const device = await devices.behind({ typeId: 'MFA', timeoutSeconds: -1 })
    const token = await devices.openSession(device)
    expect(await devices.dial(device, token, { isJudgedByRouter })).toMatchObject(refused)
    const app = await turnOnMfa(controller, sessionOf(device.id))
    const given = await device.call('POST', '/authenticate/mfa', { code: app.freshCode() })
    expect(given.status, given.text).toBe(200)
    const judged = await devices.dial(device, await devices.openSession(device), {
      isJudgedByRouter,
    })
    expect(judged).toMatchObject({ ok: true })
  })

  test('is not trusted for a client whose session is not an OIDC session', async () => {
    const device = await devices.behind(atWork)
    const caller = sessionOf(device.id)
    const call: Device['call'] = (method, path, body) => caller.call(method, client + path, body)
    const shown = {
      routerId: device.routerId,
      apiSessionToken: caller.token ?? '',
      fingerprints: [await certificateBy(call)],
    }
    const open = { serviceId: device.serviceId, type: 'Dial' }
    expect((await call('POST', '/sessions', open)).body.error?.code).toBe('INVALID_POSTURE')
    expect(await devices.clients.report(shown, [domain('corp.test')])).toBe(false)
    await call('POST', '/posture-response', { id: '0', typeId: 'DOMAIN', domain: 'corp.test' })
    const { token } = (await call('POST', '/sessions', open)).body.data as { token: string }
    const older = { ...device, shown }
    expect(await devices.dial(older, token)).toMatchObject({ ok: true })
    const check = `${management}/posture-checks/${device.checkId}`
    const changed = await root.call('PATCH', check, { typeId: 'DOMAIN', domains: ['other.test'] })
    expect(changed.status, changed.text).toBe(200)
    expect(await devices.dial(older, token, { isJudgedByRouter })).toMatchObject(refused)
  })
})
