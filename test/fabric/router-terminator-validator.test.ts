import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  TerminatorFault,
  TerminatorStatesSchema,
  ValidateTerminatorsSchema,
} from '../../proto/gen/router_pb.ts'
import { encodeInt32 } from '../../src/channel/headers.ts'
import { channelHeaderKey } from '../../src/channel/numbers.ts'
import { RouterTerminatorValidator } from '../../src/fabric/clients/router-terminator-validator.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import type { RouterTerminator } from '../../src/ports/hosted-terminators.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { RouterStage } from './stage.ts'

// Goal: terminators that their own router does not have are removed; no router can affect
// terminators of other routers.

let stage: RouterStage
let validation: RouterTerminatorValidator
let ofRouters: Record<string, RouterTerminator[]>
/** Each removal as `router terminator …`. */
let removed: string[]
let outcome: string
let isLeader: boolean
let nowMs: number

beforeEach(() => {
  stage = new RouterStage()
  ofRouters = {
    er1: [terminator('t1', 'edge'), terminator('t2', 'tunnel')],
    er2: [terminator('t3')],
  }
  removed = []
  outcome = ''
  isLeader = true
  nowMs = 1000
  validation = new RouterTerminatorValidator({
    terminators: { ofRouter: (id) => ofRouters[id] ?? [] },
    writes: {
      remove: ({ router }, ids) => {
        removed.push([router.id, ...ids].join(' '))
        return Promise.resolve(outcome)
      },
    },
    isLeader: () => isLeader,
    clock: { monotonicMs: () => nowMs },
    log: { info: () => undefined, warn: () => undefined },
  })
  stage.channels.add(validation)
})
afterEach(() => stage.channels.stop())

function terminator(id: string, binding = 'edge'): RouterTerminator {
  return { id, binding, address: `at ${id}` }
}

async function pass(ms: number): Promise<void> {
  nowMs += ms
  stage.channels.sweep()
  await settle()
}

const asked = (pipe: Pipe) =>
  pipe.ofType(1041).map(({ body }) => fromBinary(ValidateTerminatorsSchema, body))

async function answer(pipe: Pipe, states: Readonly<Record<string, boolean>>, marker: bigint) {
  const message = create(TerminatorStatesSchema, {
    states: Object.fromEntries(
      Object.entries(states).map(([id, valid]) => [id, { valid, marker }]),
    ),
  })
  pipe.say({ contentType: 1042, body: toBinary(TerminatorStatesSchema, message) })
  await settle()
}

const markerOf = (pipe: Pipe): bigint => asked(pipe).at(-1)?.terminators[0]?.marker ?? 0n

test('the leader validates a router’s terminators after the router has connected, and removes those that the router does not know', async () => {
  const er1 = await stage.dial('er1')
  await pass(4999)
  expect(asked(er1)).toEqual([])
  await pass(1)
  const [question, ...more] = asked(er1)
  expect(more).toEqual([])
  expect(question).toMatchObject({
    fixInvalid: true,
    postCreate: true,
    terminators: [
      { id: 't1', binding: 'edge', address: 'at t1' },
      { id: 't2', binding: 'tunnel' },
    ],
  })
  expect(markerOf(er1)).not.toBe(0n)
  await answer(er1, { t1: true }, markerOf(er1))
  expect(removed).toEqual([])
  await answer(er1, { t2: false }, markerOf(er1))
  expect(removed).toEqual(['er1 t2'])
  await pass(60_000)
  expect(asked(er1), 'once per connection').toHaveLength(1)
})

test('a router’s response to a validation cannot affect terminators of other routers, and is ignored if its marker differs from the query’s', async () => {
  const er1 = await stage.dial('er1')
  await answer(er1, { t1: false }, 0n)
  await pass(5000)
  await answer(er1, { t3: false, t1: false }, markerOf(er1) + 1n)
  await answer(er1, { t3: false }, markerOf(er1))
  expect(removed).toEqual([])
})

test('a follower validates no terminators, and validates those of all routers when it becomes leader', async () => {
  isLeader = false
  const er1 = await stage.dial('er1')
  await pass(60_000)
  expect(asked(er1)).toEqual([])
  isLeader = true
  await pass(0)
  isLeader = false
  await pass(0)
  isLeader = true
  await pass(5000)
  expect(asked(er1)).toHaveLength(2)
})

test('the leader queries a router again if the removal of a terminator failed', async () => {
  const er1 = await stage.dial('er1')
  await pass(5000)
  outcome = 'nobody leads'
  await answer(er1, { t1: false }, markerOf(er1))
  await pass(5000)
  expect(asked(er1)).toHaveLength(2)
})

describe('a validation of terminators on request', () => {
  const { terminatorLookMs } = routerLimits

  /** Runs a validation on a follower, because any controller may do it. */
  async function looked(pipe: Pipe, ids: readonly string[], isFixing = false) {
    isLeader = false
    const connection = stage.channels.connection('er1') ?? expect.unreachable('er1 is connected')
    const findings = validation.look(
      connection,
      ids.map((id) => terminator(id)),
      isFixing,
    )
    await settle()
    return { findings, marker: markerOf(pipe) }
  }

  test('queries the router and, through the router, the hosts, and removes nothing', async () => {
    const er1 = await stage.dial('er1')
    const { findings, marker } = await looked(er1, ['t1', 't2'])
    expect(asked(er1).at(-1)).toMatchObject({ fixInvalid: false, postCreate: false })
    await answer(er1, { t1: true }, marker)
    await answer(er1, { t2: false }, marker)
    expect(await findings).toEqual(
      new Map([
        ['t1', { state: 'valid', detail: '' }],
        ['t2', { state: 'unknownBinding', detail: '' }],
      ]),
    )
    expect(removed).toEqual([])
  })

  test('lets the router correct its state if the caller requests it', async () => {
    const er1 = await stage.dial('er1')
    const { findings, marker } = await looked(er1, ['t1'], true)
    expect(asked(er1).at(-1)).toMatchObject({ fixInvalid: true, postCreate: false })
    await answer(er1, { t1: true }, marker)
    expect((await findings).size).toBe(1)
  })

  test('accepts only one response of the queried router, and no response of another router', async () => {
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    const { findings, marker } = await looked(er1, ['t1', 't2'])
    await answer(er2, { t1: false, t2: false }, marker)
    await answer(er1, { t1: true, t3: false }, marker)
    await answer(er1, { t1: false, t2: true }, marker)
    const valid = { state: 'valid', detail: '' }
    expect(Object.fromEntries(await findings)).toEqual({ t1: valid, t2: valid })
  })

  test('ends at its timeout with the results so far', async () => {
    const er1 = await stage.dial('er1')
    const { findings, marker } = await looked(er1, ['t1', 't2'])
    await answer(er1, { t1: true }, marker)
    await pass(terminatorLookMs - 1)
    let isOver = false
    void findings.then(() => {
      isOver = true
    })
    await settle()
    expect(isOver).toBe(false)
    await pass(1)
    expect([...(await findings).keys()]).toEqual(['t1'])
  })

  test('ends when the router disconnects', async () => {
    const er1 = await stage.dial('er1')
    const { findings } = await looked(er1, ['t1'])
    er1.destroy()
    expect((await findings).size).toBe(0)
  })

  test('ends after a single response of an OpenZiti router, even if the response omits terminators whose hosts are still being queried', async () => {
    const er1 = await stage.dial('er1')
    const { findings, marker } = await looked(er1, ['t1', 't2'])
    const states = {
      t1: { valid: false, reason: TerminatorFault.BAD_STATE, detail: 'gone', marker },
    }
    const body = toBinary(TerminatorStatesSchema, create(TerminatorStatesSchema, { states }))
    const headers = new Map([[channelHeaderKey.replyFor, encodeInt32(99)]])
    er1.say({ contentType: 1042, body, headers })
    await settle()
    expect(await findings).toEqual(new Map([['t1', { state: 'badState', detail: 'gone' }]]))
  })
})
