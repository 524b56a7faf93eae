import { afterEach, beforeEach, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { admin, startController, type TestController, user } from './support/controller.ts'
import { eventually } from '../support/eventually.ts'

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

const minute = 60_000
const current = `${management}/current-api-session`

interface Session {
  readonly id: string
  readonly token: string
  readonly expiresAt: string
  readonly expirationSeconds: number
  readonly lastActivityAt: string
  readonly cachedLastActivityAt: string
  readonly [key: string]: unknown
}

/** Runs the periodic task that shares the last use of sessions, and waits for it. */
async function spread(): Promise<void> {
  controller.scheduler.run(10_000)
  await Promise.resolve()
}
async function writeToLog(): Promise<void> {
  controller.scheduler.run(5 * minute)
  await Promise.resolve()
}
async function sweep(): Promise<void> {
  controller.scheduler.run(5000)
  await Promise.resolve()
}

test('a log-in returns the session, its expiry, and its token in the headers zt-session and net-session', async () => {
  const alice = new CallerOf(controller)
  const reply = await alice.call('POST', `${client}/authenticate?method=password`, {
    ...user,
    configTypes: ['nothing', 'all'],
    envInfo: { OS: 'linux', arch: 'x64', deviceId: 'd1' },
    sdkInfo: { appID: 'my app', version: 'v1' },
  })
  expect(reply.status).toBe(200)
  const session = reply.body.data as Session
  expect(session).toMatchObject({
    identityId: 'alice-id',
    authenticatorId: 'alice-updb',
    identity: { entity: 'identities', id: 'alice-id', name: 'Alice' },
    configTypes: ['all'],
    ipAddress: '127.0.0.1',
    authQueries: [],
    isMfaRequired: false,
    isMfaComplete: false,
    expirationSeconds: 1800,
    expiresAt: '2026-01-02T03:34:05.670Z',
  })
  expect(session.token).toBe(controller.tokenOf(session.id))
  expect(reply.headers['zt-session']).toBe(session.token)
  expect(reply.headers['net-session']).toBe(session.token)
  expect(reply.headers['expiration-seconds']).toBe('1800')
  expect(reply.headers['expires-at']).toBe('2026-01-02 03:34:05.67 +0000 UTC')
  const info = await root.get(`${management}/identities/alice-id`)
  expect(info.body.data).toMatchObject({
    envInfo: { os: 'linux', arch: 'x64' },
    sdkInfo: { appId: 'my app', version: 'v1' },
  })
  alice.token = session.token
  const me = await alice.get(`${client}/current-identity`)
  expect(me.body.data).toMatchObject({
    id: 'alice-id',
    _links: { self: { href: './current-identity' } },
  })
  for (const header of ['zt-session', 'net-session']) {
    const answer = await new CallerOf(controller).get(`${client}/current-api-session`, {
      [header]: session.token,
    })
    expect(answer.status).toBe(200)
  }
})

test('no log entry and no record contains the token of a session', async () => {
  const { token } = root
  expect(controller.cluster.entries.length).toBeGreaterThan(0)
  const kept = JSON.stringify([
    [...controller.state.storedRecords()],
    [...controller.state.audit.newestFirst()],
    controller.cluster.entries.map(({ data }) => Buffer.from(data).toString('latin1')),
  ])
  expect(kept).toContain((token ?? '').split('.')[1])
  const mac = (token ?? '').split('.')[2] ?? ''
  expect(mac).toHaveLength(43)
  expect(kept).not.toContain(mac)
  expect(kept).not.toContain(admin.password)
})

test('a log-out ends the session immediately', async () => {
  expect((await root.call('DELETE', current)).status).toBe(200)
  const reply = await root.get(current)
  expect(reply.status).toBe(401)
  expect(reply.headers['www-authenticate']).toContain('error="invalid"')
})

test('a session expires by inactivity, and every use counts as activity', async () => {
  for (let use = 0; use < 3; use += 1) {
    controller.clock.advance(29 * minute)
    expect((await root.get(current)).status).toBe(200)
  }
  const { expiresAt } = (await root.get(current)).body.data as Session
  expect(Date.parse(expiresAt)).toBe(controller.clock.nowMs() + 30 * minute)
  controller.clock.advance(30 * minute + 1)
  const reply = await root.get(current)
  expect(reply.status).toBe(401)
  expect(reply.headers['www-authenticate']).toContain('error="expired"')
})

const touches = () =>
  controller.cluster.proposals.filter(({ kind }) => kind === CommandKind.SESSION_TOUCH)

test('a controller sends session activity directly to the other controllers, not through the log, after half a minute of new activity', async () => {
  controller.clock.advance(29_000)
  await root.get(current)
  await spread()
  expect(controller.activity.own.size).toBe(0)
  controller.clock.advance(2000)
  await root.get(current)
  await spread()
  expect([...controller.activity.own.values()]).toEqual([controller.clock.nowMs()])
  controller.clock.advance(20_000)
  await root.get(current)
  await spread()
  expect([...controller.activity.own.values()]).toEqual([controller.clock.nowMs() - 20_000])
  expect(touches()).toHaveLength(0)
})

test('the leader periodically writes session activity to the log, and then stops sending the logged activity directly to the other controllers', async () => {
  controller.clock.advance(31_000)
  await root.get(current)
  await spread()
  controller.cluster.hasLeader = false
  await writeToLog()
  expect(touches()).toHaveLength(0)
  controller.cluster.hasLeader = true
  await writeToLog()
  expect(touches()).toHaveLength(1)
  const session = (await root.get(current)).body.data as Session
  expect(session.lastActivityAt).toBe(new Date(controller.clock.nowMs()).toISOString())
  await writeToLog()
  expect(touches()).toHaveLength(1)
  expect(controller.activity.own.size).toBe(0)
})

test('a request to another controller keeps the session alive, even after that controller has left the cluster', async () => {
  const { id } = (await root.get(current)).body.data as Session
  controller.clock.advance(29 * minute)
  controller.activity.hear('ctrl2', id, controller.clock.nowMs())
  controller.activity.hear('ctrl2', id, undefined)
  controller.clock.advance(29 * minute)
  await sweep()
  controller.clock.advance(minute)
  await sweep()
  expect((await root.get(current)).status).toBe(200)
})

test('a session use that another controller reports with a future time is recorded with the current time', async () => {
  const { id } = (await root.get(current)).body.data as Session
  controller.activity.hear('ctrl2', id, controller.clock.nowMs() + 600 * minute)
  controller.clock.advance(30 * minute + 1)
  expect((await root.get(current)).status).toBe(401)
})

test('a controller publishes unsent session activity before it stops', async () => {
  controller.clock.advance(31_000)
  await root.get(current)
  await controller.app.close()
  expect(controller.activity.own.size).toBe(1)
})

test('a new leader removes expired sessions only after the other controllers had time to report recent uses', async () => {
  await new CallerOf(controller).logIn(user)
  expect(controller.machine.count('apiSession')).toBe(2)
  controller.clock.advance(40 * minute)
  await sweep()
  controller.clock.advance(40_000)
  await sweep()
  expect(controller.machine.count('apiSession')).toBe(2)
  controller.clock.advance(10_000)
  await sweep()
  expect(controller.machine.count('apiSession')).toBe(0)
})

test('a session used at this controller is not removed, even if its use has not been written to the log', async () => {
  await sweep()
  controller.clock.advance(29 * minute)
  await root.get(current)
  controller.clock.advance(29 * minute)
  await sweep()
  expect(controller.machine.count('apiSession')).toBe(1)
  expect((await root.get(current)).status).toBe(200)
})

test('a controller without contact to the leader accepts existing sessions for 15 minutes', async () => {
  controller.cluster.contactMs = 15 * minute
  expect((await root.get(current)).status).toBe(200)
  controller.cluster.contactMs = 15 * minute + 1
  const reply = await root.get(current)
  expect(reply.status).toBe(503)
  expect(reply.body.error?.code).toBe('CLUSTER_NO_LEADER')
})

test('an administrator lists and ends sessions, and sees no token except that of the calling session', async () => {
  const alice = new CallerOf(controller)
  const mine = (await alice.logIn(user)).body.data as Session
  const list = (await root.get(`${management}/api-sessions`)).body.data as Session[]
  expect(list).toHaveLength(2)
  for (const { id, token } of list) expect(token).toBe(id === mine.id ? mine.id : root.token)
  const filter = encodeURIComponent('identity = "alice-id"')
  const found = await root.get(`${management}/api-sessions?filter=${filter}`)
  expect(found.body.meta?.pagination?.totalCount).toBe(1)
  const url = `${management}/api-sessions/${mine.id}`
  expect(((await root.get(url)).body.data as Session).token).toBe(mine.id)
  expect((await root.call('DELETE', url)).status).toBe(200)
  expect((await alice.get(`${client}/current-identity`)).status).toBe(401)
  expect((await root.get(url)).status).toBe(404)
  expect((await root.call('DELETE', url)).status).toBe(404)
})

test('after ten wrong passwords even the right password is refused for a second, and the response contains the waiting time', async () => {
  const guesser = new CallerOf(controller)
  for (let guess = 0; guess < 10; guess += 1) {
    expect((await guesser.logIn({ ...user, password: 'a wrong guess' })).status).toBe(401)
  }
  const held = await guesser.logIn(user)
  expect(held.status).toBe(429)
  expect(held.body.error?.code).toBe('SERVER_TOO_MANY_REQUESTS')
  expect(held.headers['retry-after']).toBe('1')
  controller.clock.advance(1000)
  expect((await guesser.logIn(user)).status).toBe(200)
})

const ends = ['log-out', 'inactivity', 'an administrator'] as const
test.for(ends)('an API session that ends by %s ends its service sessions', async (end) => {
  const made = async (collection: string, body: object): Promise<string> => {
    const reply = await root.call('POST', `${management}/${collection}`, body)
    expect(reply.status, reply.text).toBe(201)
    return (reply.body.data as Session).id
  }
  const serviceId = await made('services', { name: 'mail', encryptionRequired: true })
  await made('service-policies', {
    name: 'all may',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: ['#all'],
  })
  await made('edge-routers', { name: 'any' })
  for (const kind of ['edge-router-policies', 'service-edge-router-policies']) {
    const roles = kind === 'edge-router-policies' ? 'identityRoles' : 'serviceRoles'
    const body = { name: 'any', semantic: 'AnyOf', edgeRouterRoles: ['#all'], [roles]: ['#all'] }
    await made(kind, body)
  }
  const open = async (): Promise<{ alice: CallerOf; own: string; path: string }> => {
    const alice = new CallerOf(controller)
    await alice.logIn(user)
    const reply = await alice.call('POST', `${client}/sessions`, { serviceId })
    expect(reply.status, reply.text).toBe(201)
    const own = (await alice.get(`${client}/current-api-session`)).body.data as Session
    return {
      alice,
      own: own.id,
      path: `${management}/sessions/${(reply.body.data as Session).id}`,
    }
  }
  const [ended, other] = [await open(), await open()]
  switch (end) {
    case 'log-out':
      await ended.alice.call('DELETE', `${client}/current-api-session`)
      break
    case 'an administrator':
      await root.call('DELETE', `${management}/api-sessions/${ended.own}`)
      break
    case 'inactivity':
      // The leader starts to measure the inactivity of sessions.
      await sweep()
      controller.clock.advance(29 * minute)
      await root.get(current)
      await other.alice.get(`${client}/current-api-session`)
      controller.clock.advance(2 * minute)
      await sweep()
  }
  await eventually(async () => expect((await root.get(ended.path)).status).toBe(404))
  expect((await ended.alice.get(`${client}/current-api-session`)).status).toBe(401)
  expect((await root.get(other.path)).status).toBe(200)
})
