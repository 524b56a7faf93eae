import { expect, test } from 'vitest'

import { EVENT_NAMESPACES } from '../../src/lib/event-namespaces.ts'
import { fabric, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { newIdentity, newService } from '../api/support/network.ts'
import { EventTap } from '../events/tap.ts'
import { eventually } from '../support/eventually.ts'

// The attack: somebody who may only read events about routers, or whose session has ended,
// continues to receive the writes of administrators.

const { controller, root, sessionOf } = await controllerForFile()
const url = await controller.app.listen({ host: '127.0.0.1', port: 0 })

const ofNoRecord: ReadonlySet<string> = new Set([
  'alert',
  'circuit',
  'cluster',
  'connect',
  'link',
  'metrics',
  'router',
  'sdk',
  'service',
  'terminator',
  'usage',
])

function tap(token: string | null, query = ''): Promise<EventTap> {
  return EventTap.open(`${url}${fabric}/events${query}`, { 'net-session': token ?? '' })
}

test('a caller with permission to watch only routers receives no events about records, even if it subscribes to records or to all events', async () => {
  const watcher = sessionOf(await newIdentity(root, 'watcher', { permissions: ['ops.read'] }))
  // A new event namespace must be refused here unless it is listed as one without records.
  for (const one of EVENT_NAMESPACES.filter((name) => !ofNoRecord.has(name))) {
    const refused = await tap(watcher.token, `?namespaces=router,${one}`)
    refused.close()
    expect(refused.status, one).toBe(401)
  }
  const stream = await tap(watcher.token)
  await eventually(() => expect(stream.of('ready')).toHaveLength(1))
  await newService(root, 'of-somebody-else')
  controller.events.publishFact({ kind: 'router', routerId: 'r1', isOnline: true })
  // Other events about the cluster arrive as time passes.
  const ofRouters = (): number =>
    stream.events.filter(({ namespace }) => namespace === 'router').length
  await eventually(() => expect(ofRouters()).toBe(1))
  expect(stream.raw).not.toContain('of-somebody-else')
  stream.close()
})

test('a caller receives no events after its session has ended', async () => {
  const id = await newIdentity(root, 'leaver', { isAdmin: true })
  const leaver = sessionOf(id)
  const stream = await tap(leaver.token)
  await eventually(() => expect(stream.of('ready')).toHaveLength(1))
  expect((await root.call('DELETE', `${management}/identities/${id}`)).status).toBe(200)
  await newService(root, 'after-the-end')
  await eventually(() => expect(stream.isEnded).toBe(true))
  // Events about the cluster arrive as time passes, also before the session ends.
  expect(stream.raw).not.toContain('after-the-end')
})
