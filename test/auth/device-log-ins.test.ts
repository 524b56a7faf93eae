import { expect, test } from 'vitest'

import { deviceLogInLimits, DeviceLogIns } from '../../src/auth/oidc/device-log-ins.ts'
import type { DeviceFlow } from '../../src/auth/oidc/device-flow.ts'
import { ManualClock } from '../api/support/manual-time.ts'

const flow = {
  begin: () => Promise.resolve({ id: 'own flow', deviceCode: 'secret' }),
  isTaken: () => Promise.resolve(false),
} as unknown as DeviceFlow

/** The device log-ins of a controller that knows one device of another controller. */
function atOneController(hasRoomInTopic: () => boolean) {
  const values = new Map([['other BCDFGHJK', { request: 'flow', address: '192.0.2.1' }]])
  const published: string[] = []
  const topic = {
    get: (owner: string, key: string) => values.get(`${owner} ${key}`),
    publish: (key: string, value: { request: string; address: string }) => {
      if (!hasRoomInTopic()) return false
      values.set(`self ${key}`, value)
      published.push(key)
      return true
    },
    withdraw: (key: string) => values.delete(`self ${key}`),
  }
  const logIns = new DeviceLogIns({
    clock: new ManualClock(),
    cluster: { selfId: 'self', members: () => [{ id: 'other' }] },
    topic,
    flow,
  } as unknown as ConstructorParameters<typeof DeviceLogIns>[0])
  return { logIns, published }
}

test('if a user denies a device log-in that began at another controller, the denial is published once, and the user code is then unknown', async () => {
  const { logIns, published } = atOneController(() => true)
  expect(await logIns.deny('bcdf-ghjk', 'user')).toBe(true)
  expect(published).toEqual(['BCDFGHJK'])
  expect(await logIns.deny('bcdf-ghjk', 'user')).toBe(false)
})

test('the denial of a device log-in is refused while the controller has no room to publish it, and succeeds afterwards', async () => {
  let hasRoom = false
  const { logIns } = atOneController(() => hasRoom)
  const denial = logIns.deny('BCDF-GHJK', 'user')
  await expect(denial).rejects.toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS' })
  hasRoom = true
  expect(await logIns.deny('BCDF-GHJK', 'user')).toBe(true)
})

test('the denial of a device log-in is refused while waiting devices use the whole share of the user’s source', async () => {
  const { logIns, published } = atOneController(() => true)
  const request = { clientId: 'native', scopes: [] }
  const from = { address: '192.0.2.2', source: 'user' }
  const ownShare = deviceLogInLimits.deviceLogInsMax * 0.75
  for (let count = 0; count < ownShare; count += 1) await logIns.begin(request, 'issuer', from)
  const denial = logIns.deny('BCDF-GHJK', 'user')
  await expect(denial).rejects.toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS' })
  expect(published).not.toContain('BCDFGHJK')
})
