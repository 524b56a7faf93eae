import { expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { LAST_SEEN_FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { listed, newIdentity, shown } from './support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()
const older = await controllerForFile({}, undefined, undefined, LAST_SEEN_FEATURE_LEVEL - 1)
const { clock, machine, cluster, scheduler } = controller
const { activityLogMs } = controller.parts.limits
const identities = `${management}/identities`
const minute = 60_000
const day = 24 * 60 * minute

/** The start of the minute, as text. */
const minuteText = (ms: number): string => new Date(ms - (ms % minute)).toISOString()
const lastSeen = async (id: string): Promise<unknown> =>
  (await shown(root, `${identities}/${id}`))['lastSeenAt']
const named = async (filter: string): Promise<unknown[]> =>
  (await listed(root, `${identities}?filter=${encodeURIComponent(filter)}`)).map(({ name }) => name)

test('an identity that never logged in has no last-seen time', async () => {
  const id = await newIdentity(root, 'never')
  expect(await lastSeen(id)).toBeNull()
})

test('each request updates the last-seen time of its identity to the current minute, without a log entry', async () => {
  const id = await newIdentity(root, 'laptop')
  const laptop = sessionOf(id)
  expect(await lastSeen(id)).toBe(minuteText(clock.nowMs()))
  const { length } = cluster.proposals
  clock.advance(3 * minute)
  expect((await laptop.get(`${client}/current-identity`)).status).toBe(200)
  expect(await lastSeen(id)).toBe(minuteText(clock.nowMs()))
  expect(cluster.proposals).toHaveLength(length)
})

test('the leader writes the last-use times of all sessions in one log entry', async () => {
  const ids = [await newIdentity(root, 'phone 1'), await newIdentity(root, 'phone 2')]
  const sessions = ids.map((id) => sessionOf(id))
  clock.advance(2 * minute)
  for (const session of sessions) await session.get(`${client}/current-identity`)
  const { length } = cluster.proposals
  scheduler.run(activityLogMs)
  await expect.poll(() => cluster.proposals.length).toBe(length + 1)
  expect(cluster.proposals.at(-1)?.kind).toBe(CommandKind.SESSION_TOUCH)
  for (const id of ids) expect(await lastSeen(id)).toBe(minuteText(clock.nowMs()))
})

test('a log-out updates the identity’s last-seen time, which remains after the session and does not change the identity’s revision', async () => {
  const id = await newIdentity(root, 'visitor')
  const visitor = sessionOf(id)
  clock.advance(7 * minute)
  const { revision, updatedAt } = machine.get('identity', id) ?? {}
  expect((await visitor.call('DELETE', `${client}/current-api-session`)).status).toBe(200)
  const seen = minuteText(clock.nowMs())
  clock.advance(day)
  root.token = controller.openSession('admin-id')
  expect(await lastSeen(id)).toBe(seen)
  expect(machine.get('identity', id)).toMatchObject({ revision, updatedAt })
})

test('deleting another identity’s session does not change the last-seen time of that identity', async () => {
  const id = await newIdentity(root, 'employee')
  sessionOf(id)
  const seen = minuteText(clock.nowMs())
  clock.advance(9 * minute)
  const [session] = await listed(
    root,
    `${management}/api-sessions?filter=${encodeURIComponent(`identity = "${id}"`)}`,
  )
  const url = `${management}/api-sessions/${String(session?.['id'])}`
  expect((await root.call('DELETE', url)).status).toBe(200)
  expect(await lastSeen(id)).toBe(seen)
})

test('using a session on another controller updates the last-seen time', async () => {
  const id = await newIdentity(root, 'traveler')
  sessionOf(id)
  const sessionId = machine.findAll('apiSession', 'identityId', id)[0]?.id ?? ''
  clock.advance(4 * minute)
  controller.activity.hear('ctrl2', sessionId, clock.nowMs())
  expect(await lastSeen(id)).toBe(minuteText(clock.nowMs()))
})

test('identities can be filtered and sorted by their last-seen time', async () => {
  const old = await newIdentity(root, 'seen long ago')
  const session = sessionOf(old)
  await session.call('DELETE', `${client}/current-api-session`)
  const thenMs = clock.nowMs()
  clock.advance(31 * day)
  root.token = controller.openSession('admin-id')
  sessionOf(await newIdentity(root, 'seen today'))
  const before = `lastSeenAt < datetime(${new Date(clock.nowMs() - 30 * day).toISOString()})`
  expect(await named(`name contains "seen" and ${before}`)).toEqual(['seen long ago'])
  expect(await named('name contains "seen" sort by lastSeenAt desc')).toEqual([
    'seen today',
    'seen long ago',
  ])
  expect(await named('name contains "never" and lastSeenAt = null')).toEqual(['never'])
  expect(await named(`name contains "never" and ${before}`)).toEqual([])
  expect(await lastSeen(old)).toBe(minuteText(thenMs))
})

test('no last-seen time is stored below the feature level that introduced it', async () => {
  const id = await newIdentity(older.root, 'of an older release')
  const session = older.sessionOf(id)
  expect((await session.call('DELETE', `${client}/current-api-session`)).status).toBe(200)
  expect(older.controller.machine.get('identity', id)?.lastSeenAt).toBeNull()
})
