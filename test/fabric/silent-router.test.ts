import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { encodeFlag } from '../../src/channel/headers.ts'
import { channelHeaderKey } from '../../src/channel/numbers.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { askByService, HeirStage, routes } from './heir-stage.ts'

// Routers of OpenZiti 1.x announce no group of sockets.
const withoutGroup = [channelHeaderKey.isGrouped, encodeFlag(false)] as const

const client = { identityId: 'i1', identityName: 'clerk', serviceId: 's1' }

let clock: ManualClock
let stage: HeirStage
let er1: Pipe

beforeEach(async () => {
  clock = new ManualClock()
  stage = new HeirStage(clock)
  stage.judged = { ok: true, client: { ...client, sessionId: 'dial', apiSessionId: 'session' } }
  stage.hosted = [['t1', 'er1']]
  er1 = await stage.routers.dial('er1', [withoutGroup])
})
afterEach(() => stage.routers.channels.stop())

const refusals = (): readonly string[] =>
  er1.ofType(20_002).map(({ body }) => Buffer.from(body).toString())

describe('a router of OpenZiti 1.x whose first message arrives seconds after its hello', () => {
  test('gets no circuit in the first second, because the clients may have given up', async () => {
    clock.advance(3000)
    await askByService(er1, 'first-in-the-queue')
    clock.advance(999)
    await askByService(er1, 'second-in-the-queue')
    const waited = 'the request waited too long at the router'
    expect(refusals()).toEqual([waited, waited])
    expect(routes(er1)).toEqual([])
    clock.advance(1)
    await askByService(er1, 'after-the-whole-queue')
    expect(routes(er1)).toHaveLength(1)
  })
})

describe('a router of OpenZiti 1.x that sends a message soon after its hello', () => {
  test('gets circuits, also after a long pause', async () => {
    clock.advance(2999)
    er1.say({ contentType: 2 })
    await settle()
    clock.advance(60_000)
    await askByService(er1, 'after-a-long-pause')
    expect(refusals()).toEqual([])
    expect(routes(er1)).toHaveLength(1)
  })
})

describe('a router of OpenZiti 2.x whose first message arrives seconds after its hello', () => {
  test('gets circuits, because it uses the channel immediately, and only the controller was busy', async () => {
    const newer = await stage.routers.dial('er1')
    clock.advance(3000)
    await askByService(newer, 'first-of-the-router')
    expect(newer.ofType(20_002)).toEqual([])
    expect(routes(newer)).toHaveLength(1)
  })
})
