import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  CreateTerminatorResult,
  CreateTerminatorV2AnswerSchema,
} from '../../proto/gen/router_pb.ts'
import { encodeFlag } from '../../src/channel/headers.ts'
import { controlContentType } from '../../src/channel/messages/control.ts'
import { edgeErrorCode, retryHint } from '../../src/channel/messages/edge.ts'
import { channelHeaderKey } from '../../src/channel/numbers.ts'
import { UnknownHostHandler } from '../../src/fabric/clients/unknown-host-handler.ts'
import type { RouterTerminator } from '../../src/ports/hosted-terminators.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { RouterStage } from './stage.ts'

// Goal: after a migration or a restore, clients host their services again immediately; hosts that
// the controllers know are not disturbed.

let stage: RouterStage
let known: RouterTerminator[]
let isLeader: boolean
/** The response of every router to the inspection. */
let reported: unknown
let inspected: string[]
/** Called while the router prepares its response. */
let meanwhile: () => void

beforeEach(() => {
  stage = new RouterStage()
  known = []
  isLeader = true
  reported = { entries: [{ id: 't1', state: 'establishing', operationActive: false }] }
  inspected = []
  meanwhile = () => undefined
  stage.channels.add(
    new UnknownHostHandler({
      terminators: { ofRouter: () => known },
      inspect: (routerId, names) => {
        inspected.push([routerId, ...names].join(' '))
        meanwhile()
        return Promise.resolve({
          values: [{ name: 'sdk-terminators', value: reported }],
          errors: [],
        })
      },
      isLeader: () => isLeader,
      log: { info: () => undefined, warn: () => undefined },
    }),
  )
})
afterEach(() => stage.channels.stop())

/** Routers of OpenZiti 1.x announce no group of sockets. */
const withoutGroup = [channelHeaderKey.isGrouped, encodeFlag(false)] as const

const refused = (pipe: Pipe) =>
  pipe
    .ofType(controlContentType.createTerminatorV2Response)
    .map(({ body }) => fromBinary(CreateTerminatorV2AnswerSchema, body))

test('if the state contains no terminator of a router’s clients, a router that reports such terminators receives a refusal of each with the hint to start over', async () => {
  reported = {
    entries: [
      { id: 't1', state: 'establishing', operationActive: false },
      { id: 't2', state: 'established' },
    ],
  }
  const er1 = await stage.dial('er1')
  await settle()
  expect(inspected).toEqual(['er1 sdk-terminators'])
  const session = {
    result: CreateTerminatorResult.FAILED_OTHER,
    errorCode: edgeErrorCode.invalidSession,
    retryHint: retryHint.startOver,
    msg: 'Invalid Session',
  }
  expect(refused(er1)).toMatchObject([
    { terminatorId: 't1', ...session },
    { terminatorId: 't2', ...session },
  ])
})

test('a router is not inspected if the state contains a terminator of one of its clients', async () => {
  known = [{ id: 't0', binding: 'edge', address: 't0' }]
  await stage.dial('er1')
  expect(inspected).toEqual([])
})

test('terminators of the router’s own tunnel do not count as terminators of clients', async () => {
  known = [{ id: 't0', binding: 'tunnel', address: 't0' }]
  const er1 = await stage.dial('er1')
  await settle()
  expect(refused(er1).map(({ terminatorId }) => terminatorId)).toEqual(['t1'])
})

test('a follower inspects no router', async () => {
  isLeader = false
  await stage.dial('er1')
  expect(inspected).toEqual([])
})

test('a router of OpenZiti 1.x is not inspected, because it does not pass the hint to its clients', async () => {
  await stage.dial('er1', [withoutGroup])
  expect(inspected).toEqual([])
})

test('a terminator whose creation is in progress is not refused', async () => {
  reported = { entries: [{ id: 't1', state: 'establishing', operationActive: true }, { id: 't2' }] }
  const er1 = await stage.dial('er1')
  await settle()
  expect(refused(er1).map(({ terminatorId }) => terminatorId)).toEqual(['t2'])
})

test('no terminator is refused if the state contains a terminator of one of the router’s clients by the time the router answers', async () => {
  meanwhile = () => {
    known = [{ id: 't1', binding: 'edge', address: 't1' }]
  }
  const er1 = await stage.dial('er1')
  await settle()
  expect(inspected).toEqual(['er1 sdk-terminators'])
  expect(refused(er1)).toEqual([])
})

test.each([
  ['text', 'no JSON'],
  ['a number', 7],
  ['null', null],
  ['entries that are no list', { entries: { id: 't1' } }],
  ['entries without a usable ID', { entries: [null, 7, 't1', {}, { id: 7 }, { id: '' }] }],
])('a router that reports %s receives no refusal and stays connected', async (_, value) => {
  reported = value
  const er1 = await stage.dial('er1')
  await settle()
  expect(refused(er1)).toEqual([])
  expect([...stage.channels.connections()]).toHaveLength(1)
})

test('a router that reports thousands of terminators receives all refusals', async () => {
  const ids = Array.from({ length: 3000 }, (_, at) => `t${at}`)
  reported = { entries: ids.map((id) => ({ id })) }
  const er1 = await stage.dial('er1')
  await expect.poll(() => refused(er1).map(({ terminatorId }) => terminatorId)).toEqual(ids)
})
