import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  DataStateSchema,
  type ModelChangeSet,
  ModelChangeSetSchema,
  SubscribeToDataModelSchema,
} from '../../proto/gen/router_pb.ts'
import { readText } from '../../src/channel/headers.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import type {
  ModelEvent,
  ModelListener,
  ModelIdentity,
  RouterModel,
} from '../../src/ports/router-model.ts'
import { ModelHandler } from '../../src/fabric/model/model-handler.ts'
import {
  appendPreviousIndex,
  ModelChangeHistory,
} from '../../src/fabric/model/model-change-history.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { until } from '../process/support/client.ts'
import { RouterStage } from './stage.ts'

/** A data model whose services are created one after the other, with a log entry for each. */
class Model implements RouterModel {
  appliedIndex = 10
  readonly events: ModelEvent[] = []
  readonly identities = new Map<string, ModelIdentity>()
  follower: ModelListener | null = null

  all(): readonly ModelEvent[] {
    return this.events
  }

  identity(id: string): ModelIdentity | undefined {
    return this.identities.get(id)
  }

  disabledForNow(): [] {
    return []
  }

  follow(follower: ModelListener): () => void {
    this.follower = follower
    return () => {
      this.follower = null
    }
  }

  make(name: string): void {
    this.appliedIndex += 2
    const value = { id: name, name, encryptionRequired: false, configs: [] }
    const event: ModelEvent = { kind: 'service', action: 'create', value }
    this.events.push(event)
    this.follower?.onEntry(this.appliedIndex, [event])
  }
}

let stage: RouterStage
let model: Model
let isLeader = false
let nowMs = 1_000_000

beforeEach(() => {
  stage = new RouterStage()
  model = new Model()
  isLeader = false
  nowMs = 1_000_000
  stage.channels.add(
    new ModelHandler({
      model,
      timelineId: () => 'timeline-1',
      isLeader: () => isLeader,
      certificates: () => ({ controllers: [], anchors: [] }),
      connections: () => stage.channels.connections(),
      clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
      log: { info: () => undefined, warn: () => undefined },
    }),
  )
})
afterEach(() => stage.channels.stop())

interface Asked {
  readonly at?: number
  readonly timelineId?: string
  readonly id?: string
  readonly isRenewed?: boolean
  readonly seconds?: number
}

async function subscribe(pipe: Pipe, asked: Asked = {}): Promise<void> {
  const {
    at = 0,
    timelineId = 'timeline-1',
    id = 'sub-1',
    isRenewed = false,
    seconds = 300,
  } = asked
  const message = create(SubscribeToDataModelSchema, {
    currentIndex: BigInt(at),
    timelineId,
    subscriptionId: id,
    renew: isRenewed,
    subscriptionDurationSeconds: seconds,
  })
  const body = toBinary(SubscribeToDataModelSchema, message)
  pipe.say({ contentType: 20_505, sequence: 8, body })
  await settle()
}

const wholes = (pipe: Pipe): ChannelMessage[] => pipe.ofType(20_500)
const sets = (pipe: Pipe): ModelChangeSet[] =>
  pipe.ofType(20_501).map(({ body }) => fromBinary(ModelChangeSetSchema, body))
const indexes = (pipe: Pipe): (readonly [number, number])[] =>
  sets(pipe).map(({ previousIndex, index }) => [Number(previousIndex), Number(index)])

async function wholeSent(pipe: Pipe, count: number): Promise<ChannelMessage> {
  return await until(`${count} whole models`, () =>
    Promise.resolve(wholes(pipe).length === count ? wholes(pipe).at(-1) : null),
  )
}

describe('an edge router that subscribes to the router data model', () => {
  test('gets the full model first, and then each later change', async () => {
    const pipe = await stage.dial('er1')
    model.make('ledger')
    await subscribe(pipe)
    const { body, headers } = await wholeSent(pipe, 1)
    const state = fromBinary(DataStateSchema, body)
    expect(state).toMatchObject({ endIndex: 12n, timelineId: 'timeline-1' })
    expect(state.events).toHaveLength(1)
    expect(readText(headers, 1026)).toBe('sub-1')
    model.make('vault')
    model.make('safe')
    await settle()
    expect(indexes(pipe)).toEqual([
      [12, 14],
      [14, 16],
    ])
  })

  test('gets only the changes that it missed when it reconnects', async () => {
    const first = await stage.dial('er1')
    await subscribe(first)
    await wholeSent(first, 1)
    first.destroy()
    model.make('ledger')
    model.make('vault')
    const again = await stage.dial('er1')
    await subscribe(again, { at: 10, id: 'sub-2' })
    expect(wholes(again)).toEqual([])
    expect(indexes(again)).toEqual([
      [10, 12],
      [12, 14],
    ])
  })

  test('gets nothing if it is up to date, even if its last changes came from a controller that had applied more entries', async () => {
    const pipe = await stage.dial('er1')
    await subscribe(pipe, { at: 11 })
    expect([wholes(pipe), sets(pipe)]).toEqual([[], []])
    model.make('ledger')
    await settle()
    expect(indexes(pipe)).toEqual([[11, 12]])
  })

  test('with an index that the controller has not reached gets later changes from a follower once this follower has caught up, but the full model from the leader', async () => {
    const pipe = await stage.dial('er1')
    await subscribe(pipe, { at: 13 })
    model.make('ledger')
    await settle()
    expect([wholes(pipe), sets(pipe)]).toEqual([[], []])
    model.make('vault')
    await settle()
    expect(indexes(pipe)).toEqual([[13, 14]])
    isLeader = true
    await subscribe(pipe, { at: 99, id: 'sub-2' })
    await wholeSent(pipe, 1)
  })

  test.each([
    ['of another timeline', { at: 10, timelineId: 'timeline-0' }],
    ['older than the retained changes', { at: 5 }],
    ['that is empty', { at: 0 }],
  ])('with a model %s gets the full model', async (_what, asked) => {
    const pipe = await stage.dial('er1')
    await subscribe(pipe, asked)
    await wholeSent(pipe, 1)
  })

  test('keeps its position when it renews its subscription, even if it sends another index', async () => {
    const pipe = await stage.dial('er1')
    await subscribe(pipe, { at: 10 })
    model.make('ledger')
    await settle()
    await subscribe(pipe, { at: 10, isRenewed: true })
    expect(indexes(pipe)).toEqual([[10, 12]])
  })

  test('gets no more changes once its subscription has expired', async () => {
    const pipe = await stage.dial('er1')
    await subscribe(pipe, { at: 10, seconds: 1 })
    nowMs += 9000
    stage.channels.sweep()
    model.make('ledger')
    await settle()
    expect(sets(pipe)).toHaveLength(1)
    nowMs += 2000
    stage.channels.sweep()
    model.make('vault')
    await settle()
    expect(sets(pipe)).toHaveLength(1)
  })

  test('gets the new model after the state was replaced', async () => {
    const pipe = await stage.dial('er1')
    await subscribe(pipe, { at: 10 })
    model.appliedIndex = 40
    model.follower?.onReplaced()
    const { body } = await wholeSent(pipe, 1)
    expect(fromBinary(DataStateSchema, body).endIndex).toBe(40n)
  })

  test('learns that a temporarily disabled identity is enabled again, although this writes no log entry', async () => {
    const pipe = await stage.dial('er1')
    await subscribe(pipe, { at: 10 })
    const value: ModelIdentity = {
      id: 'i1',
      name: 'clerk',
      defaultHostingPrecedence: 'default',
      defaultHostingCost: 0,
      serviceHostingPrecedences: {},
      serviceHostingCosts: {},
      appDataJson: '{}',
      serviceConfigs: {},
      disabledAt: nowMs,
      disabledUntil: nowMs + 60_000,
    }
    model.identities.set('i1', value)
    model.follower?.onEntry(12, [{ kind: 'identity', action: 'update', value }])
    await settle()
    nowMs += 61_000
    stage.channels.sweep()
    await settle()
    const told = sets(pipe).flatMap(({ isSynthetic, changes }) =>
      changes.map(({ model: of }) => [isSynthetic, of.case === 'identity' && of.value.disabled]),
    )
    expect(told).toEqual([
      [false, true],
      [true, false],
    ])
  })
})

test('the controller does not track changes for the data model while no edge router is connected', async () => {
  expect(model.follower).toBeNull()
  await stage.dial('er1')
  expect(model.follower).not.toBeNull()
})

describe('the history of data model changes', () => {
  test('drops the oldest changes if it exceeds its limits of number and bytes, and knows from which indexes it can update a router', () => {
    const log = new ModelChangeHistory(5, { modelEntriesMax: 3, modelEntriesBytesMax: 10_000 })
    for (const index of [6, 8, 9, 12]) log.add(index, [], 't')
    expect([log.holds(5), log.holds(6), log.holds(7)]).toEqual([false, true, true])
    expect(log.after(8).map(({ index }) => index)).toEqual([9, 12])
    const small = new ModelChangeHistory(0, { modelEntriesMax: 100, modelEntriesBytesMax: 10 })
    for (const index of [1, 2, 3, 4]) small.add(index, [], 'timeline')
    expect(small.after(0).length).toBeLessThan(2)
  })

  test('contains for each set of changes the index of the previous set', () => {
    const log = new ModelChangeHistory(5, { modelEntriesMax: 3, modelEntriesBytesMax: 10_000 })
    log.add(6, [], 't')
    const [change] = log.after(5)
    const set = fromBinary(
      ModelChangeSetSchema,
      appendPreviousIndex(change?.bytes ?? new Uint8Array(), 5),
    )
    expect(set).toMatchObject({ index: 6n, previousIndex: 5n, timelineId: 't' })
  })
})
