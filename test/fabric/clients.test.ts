import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { CommandKind, HostedTerminatorCreateSchema } from '../../proto/gen/command_pb.ts'
import {
  ApiSessionAddedSchema,
  ApiSessionHeartbeatSchema,
  ApiSessionRemovedSchema,
  ConnectEventsSchema,
  CreateTerminatorResult,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
  type ModelPrecedence,
  RemoveTerminatorsSchema,
  SessionRemovedSchema,
  ValidateSessionsSchema,
} from '../../proto/gen/router_pb.ts'
import { readText } from '../../src/channel/headers.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import type {
  ClientSessionListener,
  ClientSession,
  EndedServiceSession,
  ClientAccessDecision,
  RouterClients,
  SessionFilter,
} from '../../src/ports/router-clients.ts'
import { ConnectionHandler } from '../../src/fabric/clients/connection-handler.ts'
import { SessionHandler } from '../../src/fabric/clients/session-handler.ts'
import { PresentedSessionTokens } from '../../src/fabric/clients/presented-session-tokens.ts'
import { RouterTerminatorWriter } from '../../src/fabric/clients/router-terminator-writer.ts'
import { TerminatorHandler } from '../../src/fabric/clients/terminator-handler.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { readsThat, RouterStage } from './stage.ts'

const session = (id: string): ClientSession => ({
  id,
  identityId: 'i1',
  fingerprints: ['aa'],
})

class Clients implements RouterClients {
  all: ClientSession[] = []
  follower: ClientSessionListener | null = null
  readonly usedTokens: string[] = []
  judged: ClientAccessDecision = {
    ok: true,
    client: {
      sessionId: 'bind',
      apiSessionId: 'session',
      serviceId: 's1',
      identityId: 'i1',
      identityName: 'clerk',
    },
  }

  /** IDs of sessions that the policies do not permit a router to know, by router ID. */
  readonly kept = new Map<string, readonly string[]>()

  sessionIds(): string[] {
    return this.all.map(({ id }) => id)
  }

  session(sessionId: string): ClientSession | null {
    return this.all.find(({ id }) => id === sessionId) ?? null
  }

  routersOf({ id }: ClientSession): { has(routerId: string): boolean } {
    return { has: (routerId) => this.kept.get(routerId)?.includes(id) !== true }
  }

  sessionFilterOf(routerId: string): SessionFilter {
    const kept = this.kept.get(routerId) ?? []
    return { key: kept.join(' '), has: ({ id }) => !kept.includes(id) }
  }

  tokensOf(id: string): readonly string[] {
    return [`token of ${id}`]
  }

  follow(follower: ClientSessionListener): () => void {
    this.follower = follower
    return () => undefined
  }

  used(routerId: string, token: string): void {
    this.usedTokens.push(`${routerId} ${token}`)
  }

  goneSession(token: string): EndedServiceSession | null {
    return token.startsWith('gone') ? { token, id: `id of ${token}` } : null
  }

  report(): Promise<boolean> {
    return Promise.resolve(true)
  }

  judge(): Promise<ClientAccessDecision> {
    return Promise.resolve(this.judged)
  }
}

let stage: RouterStage
let clients: Clients
let isLeader: boolean
let proposals: ProposalInput[]
/** IDs of the service sessions whose circuits were ended. */
let ended: string[]
/** Runs when the latest state is read; set by a test. */
let onLatest: () => void
let propose: () => ReturnType<
  ConstructorParameters<typeof RouterTerminatorWriter>[0]['proposer']['propose']
>

beforeEach(() => {
  stage = new RouterStage()
  clients = new Clients()
  isLeader = true
  proposals = []
  propose = () => Promise.resolve({ index: 1, outcome: { ok: true, id: 't1' } })
  ended = []
  onLatest = () => undefined
  const { channels } = stage
  const shown = new PresentedSessionTokens(
    clients,
    readsThat(() => onLatest()),
    systemClock,
  )
  channels.add(
    new SessionHandler({
      clients,
      shown,
      clock: systemClock,
      isLeader: () => isLeader,
      onEnded: (ids) => ended.push(...ids),
      connections: () => channels.connections(),
    }),
  )
  channels.add(
    new TerminatorHandler({
      clients: shown,
      writes: new RouterTerminatorWriter({
        log: { info: () => undefined, warn: () => undefined },
        proposer: {
          propose: (input) => {
            proposals.push(input)
            return propose()
          },
        },
      }),
    }),
  )
})
afterEach(() => stage.channels.stop())

const added = (pipe: Pipe) =>
  pipe.ofType(20_200).map((message) => ({
    ...fromBinary(ApiSessionAddedSchema, message.body),
    state: JSON.parse(readText(message.headers, 1014) ?? 'null') as {
      readonly id: string
      readonly isLast: boolean
      readonly sequence: number
    } | null,
  }))

const idsIn = (messages: ReturnType<typeof added>): string[] =>
  messages.flatMap(({ apiSessions }) => apiSessions.map(({ id }) => id))
const removed = (pipe: Pipe) =>
  pipe.ofType(20_202).map(({ body }) => fromBinary(ApiSessionRemovedSchema, body))
const ends = (pipe: Pipe) =>
  pipe.ofType(20_102).map(({ body }) => fromBinary(SessionRemovedSchema, body))

describe('the API sessions that controllers send to routers', () => {
  test('are all sent to a router that connects, a hundred per message, with one transfer ID', async () => {
    clients.all = Array.from({ length: 250 }, (_, at) => session(`s${at}`))
    const pipe = await stage.dial('er1')
    const told = added(pipe)
    expect(told.map(({ isFullState, apiSessions }) => [isFullState, apiSessions.length])).toEqual([
      [true, 100],
      [true, 100],
      [true, 50],
    ])
    expect(told.map(({ state }) => [state?.sequence, state?.isLast])).toEqual([
      [0, false],
      [1, false],
      [2, true],
    ])
    expect(new Set(told.map(({ state }) => state?.id)).size).toBe(1)
    expect(told[0]?.apiSessions[0]).toMatchObject({
      id: 's0',
      identityId: 'i1',
      token: 'token of s0',
      certFingerprints: ['aa'],
    })
  })

  test('are sent only by the leader, and sent again completely by a new leader with a later transfer ID', async () => {
    isLeader = false
    clients.all = [session('s1')]
    const pipe = await stage.dial('er1')
    stage.channels.sweep()
    expect(added(pipe)).toEqual([])
    for (const leads of [true, false, true]) {
      isLeader = leads
      stage.channels.sweep()
    }
    await settle()
    const ids = added(pipe).map(({ state }) => state?.id ?? '')
    expect(ids).toHaveLength(2)
    expect([...ids].sort()).toEqual(ids)
  })

  test('are sent one by one when they are created or ended', async () => {
    clients.all = [session('s3')]
    const pipe = await stage.dial('er1')
    clients.all = [session('s7')]
    clients.follower?.onSessions(['s7', 's3'])
    await settle()
    const [, news] = added(pipe)
    expect(news).toMatchObject({ isFullState: false, apiSessions: [{ id: 's7' }] })
    expect(removed(pipe)).toMatchObject([{ ids: ['s3'], tokens: ['token of s3'] }])
  })

  test('are sent, and reported as ended, only to routers that a policy allows their identity to use', async () => {
    clients.kept.set('far', ['s1', 's2'])
    clients.all = [session('s1')]
    const [near, far] = [await stage.dial('near'), await stage.dial('far')]
    clients.all = [session('s1'), session('s2'), session('s3')]
    clients.follower?.onSessions(['s2', 's3'])
    await settle()
    clients.all = []
    clients.follower?.onSessions(['s1', 's2', 's3'])
    await settle()
    expect(idsIn(added(near))).toEqual(['s1', 's2', 's3'])
    expect(removed(near)).toMatchObject([{ ids: ['s1', 's2', 's3'] }])
    expect(idsIn(added(far))).toEqual(['s3'])
    // A token of a session that the router never received would be an additional token in its
    // possession.
    expect(removed(far)).toMatchObject([{ ids: ['s3'], tokens: ['token of s3'] }])
  })

  test('are, after a policy change, sent or reported as ended only to routers that their identity may now use or may no longer use', async () => {
    clients.all = Array.from({ length: 300 }, (_, at) => session(`s${at}`))
    clients.kept.set('er1', ['s1', 's2'])
    const pipe = await stage.dial('er1')
    const before = added(pipe).length
    clients.kept.set('er1', ['s2', 's7'])
    clients.follower?.onRouters(['er1'])
    await settle()
    expect(idsIn(added(pipe).slice(before))).toEqual(['s1'])
    expect(removed(pipe).map(({ ids }) => ids)).toEqual([['s7']])
    clients.follower?.onRouters(null)
    await settle()
    expect([added(pipe).length - before, removed(pipe).length]).toEqual([1, 1])
  })

  test('are recorded as used when clients of a router use them', async () => {
    const pipe = await stage.dial('er1')
    const beat = create(ApiSessionHeartbeatSchema, { tokens: ['a', 'b'] })
    pipe.say({ contentType: 20_203, body: toBinary(ApiSessionHeartbeatSchema, beat) })
    await settle()
    expect(clients.usedTokens).toEqual(['er1 a', 'er1 b'])
  })

  test('are sent completely, including later changes, to each router that connects', async () => {
    clients.all = [session('s1')]
    const ids = async (router: string) =>
      added(await stage.dial(router))
        .filter(({ isFullState }) => isFullState)
        .flatMap(({ apiSessions }) => apiSessions.map(({ id }) => id))
    expect(await ids('er1')).toEqual(['s1'])
    clients.all = [session('s1'), session('s2')]
    clients.follower?.onSessions(['s2'])
    expect(await ids('er2')).toEqual(['s1', 's2'])
  })

  test('are sent again completely to a router that requests them', async () => {
    const pipe = await stage.dial('er1')
    pipe.say({ contentType: 20_204 })
    await settle()
    expect(added(pipe)).toHaveLength(2)
  })
})

test('an identity is shown as connected while the reports of any connected router list it', async () => {
  const connected = new ConnectionHandler()
  const second = new RouterStage()
  second.channels.add(connected)
  const tell = async (
    pipe: Pipe,
    ids: readonly string[],
    isConnected: boolean,
    fullState = false,
  ) => {
    const events = ids.map((identityId) => ({ identityId, isConnected }))
    const message = create(ConnectEventsSchema, { events, fullState })
    pipe.say({ contentType: 20_415, body: toBinary(ConnectEventsSchema, message) })
    await settle()
  }
  const er1 = await second.dial('er1')
  const er2 = await second.dial('er2')
  await tell(er1, ['i1', 'i2'], true)
  await tell(er2, ['i1'], true)
  await tell(er1, ['i1'], false)
  expect(connected.isConnected('i1')).toBe(true)
  await tell(er1, ['i3'], true, true)
  expect(['i2', 'i3'].map((id) => connected.isConnected(id))).toEqual([false, true])
  er2.destroy()
  await settle()
  expect(connected.isConnected('i1')).toBe(false)
  second.channels.stop()
})

test('a router that sends a query about service sessions receives the list of those that have ended', async () => {
  const pipe = await stage.dial('er1')
  const asked = create(ValidateSessionsSchema, { sessionTokens: ['gone 1', 'there', 'gone 2'] })
  pipe.say({ contentType: 20_213, body: toBinary(ValidateSessionsSchema, asked) })
  await settle()
  const [answer] = pipe.ofType(20_102).map(({ body }) => fromBinary(SessionRemovedSchema, body))
  // Routers match the tokens and the IDs by their position.
  expect(answer?.tokens).toEqual(['gone 1', 'gone 2'])
  expect(answer?.ids).toEqual(['id of gone 1', 'id of gone 2'])
})

describe('the message to routers that a service session has ended', () => {
  test('is sent to the routers that know the API session, and this controller ends the service session’s circuits', async () => {
    clients.kept.set('far', ['s1'])
    clients.all = [session('s1')]
    const [near, far] = [await stage.dial('near'), await stage.dial('far')]
    clients.follower?.onEnded([{ id: 'dial', apiSessionId: 's1' }])
    await settle()
    expect(ends(near)).toMatchObject([{ ids: ['dial'], tokens: ['dial'] }])
    expect(ends(far)).toEqual([])
    expect(ended).toEqual(['dial'])
  })

  test('is sent before the message about the API session if both sessions end at the same time', async () => {
    clients.all = [session('s1')]
    const pipe = await stage.dial('er1')
    clients.all = []
    clients.follower?.onSessions(['s1'])
    clients.follower?.onEnded([{ id: 'dial', apiSessionId: 's1' }])
    await settle()
    const types = pipe.sent.map(({ contentType }) => contentType)
    expect(types.filter((type) => type === 20_102 || type === 20_202)).toEqual([20_102, 20_202])
  })

  test('is sent by any controller to the router that presented the service session, with the token that the router presented', async () => {
    isLeader = false
    const pipe = await stage.dial('er1')
    const asked = create(CreateTerminatorV2Schema, { address: 't1', sessionToken: 'shown' })
    pipe.say({ contentType: 20_216, body: toBinary(CreateTerminatorV2Schema, asked) })
    await settle()
    clients.follower?.onEnded([{ id: 'bind', apiSessionId: 'session' }])
    await settle()
    expect(ends(pipe)).toMatchObject([{ ids: ['bind'], tokens: ['shown'] }])
  })
})

describe('a client’s request to host a service', () => {
  async function host(): Promise<{ result?: CreateTerminatorResult; errorCode?: number }> {
    const pipe = await stage.dial('er1')
    const asked = create(CreateTerminatorV2Schema, {
      address: 't1',
      sessionToken: 's',
      apiSessionToken: 'a',
      cost: 3,
      precedence: 9 as ModelPrecedence,
      peerData: { 1003: new Uint8Array([1, 2]) },
      instanceSecret: new Uint8Array([3]),
    })
    pipe.say({ contentType: 20_216, sequence: 9, body: toBinary(CreateTerminatorV2Schema, asked) })
    await settle()
    const [answer] = pipe
      .ofType(20_217)
      .map(({ body }) => fromBinary(CreateTerminatorV2AnswerSchema, body))
    expect(answer?.terminatorId).toBe('t1')
    return answer ?? {}
  }

  test('is evaluated again with the latest commit if it fails, because another controller may have created its session', async () => {
    const { judged } = clients
    clients.judged = { ok: false, fault: 'session' }
    onLatest = () => (clients.judged = judged)
    expect(await host()).toMatchObject({ result: CreateTerminatorResult.SUCCESS })
  })

  test('creates a terminator by a log entry that names the checked session, and the router as actor', async () => {
    expect(await host()).toMatchObject({ result: CreateTerminatorResult.SUCCESS })
    const [{ kind, actor, payload }] = proposals as [ProposalInput]
    expect(kind).toBe(CommandKind.HOSTED_TERMINATOR_CREATE)
    expect(actor).toMatchObject({ case: 'enrollment', value: { routerId: 'er1' } })
    expect(fromBinary(HostedTerminatorCreateSchema, payload)).toMatchObject({
      id: 't1',
      sessionId: 'bind',
      cost: 3,
      precedence: 'default',
      peerData: { '1003': 'AQI=' },
      instanceSecret: 'Aw==',
    })
  })

  test.each([
    ['apiSession', { errorCode: 2, retryHint: 2, msg: 'bind refused: apiSession' }],
    ['session', { errorCode: 3, retryHint: 2, msg: 'Invalid Session' }],
    ['sessionType', { errorCode: 4, retryHint: 2, msg: 'bind refused: sessionType' }],
    ['router', { errorCode: 5, retryHint: 2, msg: 'bind refused: router' }],
    ['service', { errorCode: 6, retryHint: 3, msg: 'bind refused: service' }],
    ['access', { errorCode: 14, retryHint: 2, msg: 'bind refused: access' }],
    ['posture', { errorCode: 15, retryHint: 2, msg: 'bind refused: posture' }],
  ] as const)(
    'is refused with the error code of the fault %s, without a log entry',
    async (fault, refusal) => {
      clients.judged = { ok: false, fault }
      const result = CreateTerminatorResult.FAILED_OTHER
      expect(await host()).toMatchObject({ result, ...refusal })
      expect(proposals).toEqual([])
    },
  )

  test('is refused permanently, so that the router closes the listener, if the terminator instance belongs to another identity', async () => {
    const fault = { field: 'identity', reason: 'another identity hosts this instance' }
    const outcome = { ok: false, code: 'COULD_NOT_VALIDATE', fault, detail: null } as const
    propose = () => Promise.resolve({ index: 1, outcome })
    expect(await host()).toMatchObject({
      result: CreateTerminatorResult.FAILED_OTHER,
      errorCode: 13,
      retryHint: 3,
    })
  })

  test('gets a response that requests a retry while there is no leader', async () => {
    propose = () => Promise.reject(new Problem('CLUSTER_NO_LEADER'))
    expect(await host()).toMatchObject({ result: CreateTerminatorResult.FAILED_BUSY })
  })

  test('is undone in one write, for all its terminators, when the client stops hosting', async () => {
    const pipe = await stage.dial('er1')
    const done = create(RemoveTerminatorsSchema, { terminatorIds: ['t1', 't2'] })
    pipe.say({ contentType: 1038, sequence: 12, body: toBinary(RemoveTerminatorsSchema, done) })
    await settle()
    expect(proposals.map(({ kind }) => kind)).toEqual([CommandKind.HOSTED_TERMINATORS_REMOVE])
    const result = pipe.ofType(2).find(({ headers }) => headers.get(1)?.[0] === 12)
    expect(result?.headers.get(2)?.[0]).toBe(1)
  })
})
