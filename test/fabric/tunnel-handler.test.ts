import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  CommandKind,
  EntityDeleteSchema,
  HostedTerminatorCreateSchema,
  HostedTerminatorsRemoveSchema,
  HostedTerminatorUpdateSchema,
} from '../../proto/gen/command_pb.ts'
import {
  CreateTerminatorResult,
  CreateTunnelTerminatorAnswerSchema,
  CreateTunnelTerminatorSchema,
  ModelPrecedence,
  UpdateTunnelTerminatorSchema,
} from '../../proto/gen/router_pb.ts'
import { encodeFlag, readInt32, encodeText } from '../../src/channel/headers.ts'
import { RouterTerminatorWriter } from '../../src/fabric/clients/router-terminator-writer.ts'
import { TunnelHandler } from '../../src/fabric/clients/tunnel-handler.ts'
import { refusedOutcome } from '../../src/fsm/apply/outcome.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ProposalInput, Proposer } from '../../src/ports/proposer.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { readsThat, RouterStage } from './stage.ts'
import { Tunnels } from './tunnels.ts'

let stage: RouterStage
let tunnels: Tunnels
let proposals: ProposalInput[]
let propose: () => ReturnType<Proposer['propose']>
let isLeader: boolean
/** Number of checks of circuits. */
let looks: number
let clock: ManualClock
/** Runs when the latest state is read; set by a test. */
let onLatest: () => void
let pipe: Pipe

beforeEach(async () => {
  stage = new RouterStage()
  tunnels = new Tunnels()
  proposals = []
  propose = () => Promise.resolve({ index: 1, outcome: { ok: true, id: '' } })
  isLeader = true
  looks = 0
  onLatest = () => undefined
  clock = new ManualClock()
  const log = { info: () => undefined, warn: () => undefined }
  const proposer: Proposer = {
    propose: (input) => {
      proposals.push(input)
      return propose()
    },
  }
  stage.channels.add(
    new TunnelHandler({
      tunnels,
      proposer,
      clock,
      log,
      reads: readsThat(() => onLatest()),
      writes: new RouterTerminatorWriter({ proposer, log }),
      isLeader: () => isLeader,
      endCircuits: () => {
        looks += 1
      },
    }),
  )
  pipe = await stage.dial('er1')
})
afterEach(() => stage.channels.stop())

const payload = (at = 0): Uint8Array => proposals[at]?.payload ?? new Uint8Array()
const kinds = () => proposals.map(({ kind }) => kind)

describe('A router’s tunneler that hosts services', () => {
  test('gets a terminator with the ID that the router has chosen', async () => {
    const asked = create(CreateTunnelTerminatorSchema, {
      serviceId: 's1',
      address: 't1',
      cost: 7,
      precedence: ModelPrecedence.REQUIRED,
      instanceId: 'front',
      peerData: { 1003: Uint8Array.of(1) },
      startTime: 5n,
    })
    const body = toBinary(CreateTunnelTerminatorSchema, asked)
    pipe.say({ contentType: 20_413, sequence: 42, body })
    await settle()
    expect(tunnels.claims).toEqual([{ routerId: 'er1', type: 'Bind', service: { id: 's1' } }])
    expect(kinds()).toEqual([CommandKind.HOSTED_TERMINATOR_CREATE])
    expect(proposals[0]?.actor).toMatchObject({ case: 'enrollment', value: { routerId: 'er1' } })
    expect(fromBinary(HostedTerminatorCreateSchema, payload())).toMatchObject({
      id: 't1',
      sessionId: '',
      serviceId: 's1',
      cost: 7,
      precedence: 'required',
      instanceId: 'front',
      peerData: { 1003: 'AQ==' },
    })
    const [answer] = pipe.ofType(20_414)
    expect(readInt32(answer?.headers ?? new Map(), 1)).toBe(42)
    expect(fromBinary(CreateTunnelTerminatorAnswerSchema, answer?.body ?? body)).toMatchObject({
      terminatorId: 't1',
      startTime: 5n,
      result: CreateTerminatorResult.SUCCESS,
    })
  })

  test('has its request evaluated again at the latest commit if it may not host, because another controller may have granted the right', async () => {
    const { judged } = tunnels
    tunnels.judged = { ok: false, fault: 'access' }
    onLatest = () => (tunnels.judged = judged)
    const asked = create(CreateTunnelTerminatorSchema, { serviceId: 's1', address: 't1' })
    const body = toBinary(CreateTunnelTerminatorSchema, asked)
    pipe.say({ contentType: 20_413, sequence: 42, body })
    await settle()
    expect(kinds()).toEqual([CommandKind.HOSTED_TERMINATOR_CREATE])
  })

  test('gets, with its terminator ID, the response that it may not host and should not retry', async () => {
    tunnels.judged = { ok: false, fault: 'access' }
    const asked = create(CreateTunnelTerminatorSchema, { address: 't1', startTime: 5n })
    const body = toBinary(CreateTunnelTerminatorSchema, asked)
    pipe.say({ contentType: 20_413, sequence: 42, body })
    await settle()
    const [answer] = pipe.ofType(20_414)
    expect(fromBinary(CreateTunnelTerminatorAnswerSchema, answer?.body ?? body)).toMatchObject({
      terminatorId: 't1',
      startTime: 5n,
      errorCode: 14,
      retryHint: 3,
      result: CreateTerminatorResult.FAILED_OTHER,
    })
    expect(proposals).toEqual([])
  })

  test('gets a response that requests a retry while there is no leader', async () => {
    propose = () => Promise.reject(new Problem('CLUSTER_NO_LEADER'))
    const asked = create(CreateTunnelTerminatorSchema, { serviceId: 's1', address: 't1' })
    const body = toBinary(CreateTunnelTerminatorSchema, asked)
    pipe.say({ contentType: 20_413, sequence: 42, body })
    await settle()
    const [answer] = pipe.ofType(20_414)
    expect(fromBinary(CreateTunnelTerminatorAnswerSchema, answer?.body ?? body).result).toBe(
      CreateTerminatorResult.FAILED_BUSY,
    )
  })

  test('can update its terminator', async () => {
    const asked = create(UpdateTunnelTerminatorSchema, {
      terminatorId: 't1',
      cost: 9,
      updateCost: true,
      precedence: ModelPrecedence.FAILED,
    })
    const body = toBinary(UpdateTunnelTerminatorSchema, asked)
    pipe.say({ contentType: 20_408, sequence: 42, body })
    await settle()
    const update = fromBinary(HostedTerminatorUpdateSchema, payload())
    expect([update.id, update.cost, update.precedence]).toEqual(['t1', 9, undefined])
    expect(pipe.ofType(20_409)).toHaveLength(1)
  })

  test('can remove its terminator', async () => {
    pipe.say({ contentType: 20_410, sequence: 42, body: encodeText('t1') })
    await settle()
    expect(fromBinary(HostedTerminatorsRemoveSchema, payload()).ids).toEqual(['t1'])
    expect(pipe.ofType(20_411)).toHaveLength(1)
  })

  test.each([
    [20_408, toBinary(UpdateTunnelTerminatorSchema, create(UpdateTunnelTerminatorSchema))],
    [20_410, encodeText('t1')],
  ])('gets an error text if its request of the type %i is refused', async (contentType, body) => {
    propose = () => Promise.resolve({ index: 1, outcome: refusedOutcome('NOT_FOUND') })
    pipe.say({ contentType, sequence: 42, body })
    await settle()
    const [refusal] = pipe.ofType(20_002)
    expect(readInt32(refusal?.headers ?? new Map(), 1)).toBe(42)
    expect(Buffer.from(refusal?.body ?? []).toString()).toBe('NOT_FOUND')
  })

  test.each([
    [true, 'default'],
    [false, 'failed'],
  ])(
    'gets, if it reports the target’s health as %s, the terminator precedence %s',
    async (isWell, precedence) => {
      const headers = new Map([
        [1022, encodeText('t1')],
        [1023, encodeFlag(isWell)],
      ])
      pipe.say({ contentType: 20_412, sequence: 42, headers })
      await settle()
      const update = fromBinary(HostedTerminatorUpdateSchema, payload())
      expect([update.id, update.precedence]).toEqual(['t1', precedence])
    },
  )
})

describe('A tunneler that has lost the right to host', () => {
  const sweep = async (): Promise<void> => {
    clock.advance(1000)
    stage.channels.sweep()
    await settle()
  }

  beforeEach(async () => {
    tunnels.hosted = [{ id: 't1', routerId: 'er1', serviceId: 's1' }]
    await sweep()
    expect([looks, proposals.length]).toEqual([1, 0])
    tunnels.judged = { ok: false, fault: 'access' }
  })

  test('loses its terminators right after the log entry that revoked the right', async () => {
    clock.advance(1000)
    tunnels.onMoved()
    await new Promise((go) => setImmediate(go))
    await settle()
    expect(kinds()).toEqual([CommandKind.ENTITY_DELETE])
    const { entity, id } = fromBinary(EntityDeleteSchema, payload())
    expect([entity, id]).toEqual(['terminator', 't1'])
  })

  test('loses its terminators through the leader, and its circuits at every controller', async () => {
    isLeader = false
    tunnels.onMoved()
    await sweep()
    expect([looks, proposals.length]).toEqual([2, 0])
    isLeader = true
    await sweep()
    expect(kinds()).toEqual([CommandKind.ENTITY_DELETE])
  })

  test('loses its terminators once a leader is elected', async () => {
    propose = () => Promise.reject(new Problem('CLUSTER_NO_LEADER'))
    tunnels.onMoved()
    await sweep()
    propose = () => Promise.resolve({ index: 1, outcome: { ok: true, id: '' } })
    await sweep()
    expect(kinds()).toEqual([CommandKind.ENTITY_DELETE, CommandKind.ENTITY_DELETE])
    await sweep()
    expect(proposals).toHaveLength(2)
  })
})
