import { clone, create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import {
  type Configuration,
  ConfigurationSchema,
  MemberSchema,
} from '../../proto/gen/membership_pb.ts'
import { DigestRequestSchema, DigestAnswerSchema } from '../../proto/gen/peer_pb.ts'
import {
  MemberChanger,
  type RequestedMemberChange,
} from '../../src/cluster/membership/member-changer.ts'
import type { MembershipConsensus } from '../../src/cluster/membership/membership-consensus.ts'
import { AdmissionServer } from '../../src/cluster/membership/admission-server.ts'
import { encodeAdmissionRequest } from '../../src/cluster/membership/decide-admission.ts'
import { LeaderRequestForwarder } from '../../src/cluster/membership/leader-request-forwarder.ts'
import {
  decodeLeaderCall,
  decodePeerMessage,
  encodeLeaderCall,
  encodePeerMessage,
} from '../../src/cluster/peer/peer-message.ts'
import { peerMethods } from '../../src/cluster/peer/peer-methods.ts'
import { MembershipReconciler } from '../../src/cluster/membership/reconciler.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { PeerHandler } from '../../src/cluster/peer-channel.ts'
import type { Role } from '../../src/raft/types.ts'
import { RecordedActions } from '../support/recorded-actions.ts'
import { until } from './mesh-fixture.ts'

// Tests the controller of the leader while consensus fails in various ways.

const ids = ['n1', 'n2', 'n3']

/**
 * Simulated consensus: each change gets the next of the given results; null: the change is
 * committed.
 */
class ScriptedConsensus implements MembershipConsensus {
  readonly selfId = 'n1'
  readonly answers: (string | null)[] = []
  readonly targets: Configuration[] = []
  readonly handlers = new Map<string, PeerHandler>()
  role: Role = 'leader'
  leader: string | null = 'n1'
  isCommitting = true
  calls: ((to: string, payload: Uint8Array) => Promise<Uint8Array>)[] = []
  #record = create(ConfigurationSchema, {
    members: ids.map((id) => create(MemberSchema, { id, voter: true })),
  })
  #index = 1
  #isCommitted = true

  readonly peers: MembershipConsensus['peers'] = {
    note: () => undefined,
    onNote: () => undefined,
    onLink: () => undefined,
    readyPeers: () => [],
    call: (to, _method, payload) => {
      const call = this.calls.shift()
      if (call === undefined) throw new Error('nothing is to be called any more')
      return call(to, payload)
    },
    serve: (method, _access, handler) => this.handlers.set(method, handler),
  }

  leaderId = () => this.leader
  status = () => ({ role: this.role, commit: 9 })
  configuration = () => ({
    record: this.#record,
    index: this.#index,
    isCommitted: this.#isCommitted,
  })
  peerStatuses = () => []
  readIndex = () => Promise.resolve(9)
  transferLeadership = () => Promise.resolve()

  /** Changes the configuration in the Raft core before the main thread is informed. */
  moveOn: (() => void) | null = null

  changeConfiguration(target: Configuration, basedOn: number): Promise<string | null> {
    this.moveOn?.()
    this.moveOn = null
    if (basedOn !== this.#index) return Promise.resolve('CHANGE_IN_PROGRESS')
    const answer = this.answers.shift() ?? null
    if (answer !== null) return Promise.resolve(answer)
    this.targets.push(target)
    this.#record = clone(ConfigurationSchema, target)
    this.#index += 1
    this.#isCommitted = this.isCommitting
    return Promise.resolve(null)
  }

  lose(id: string): void {
    this.#record.members = this.#record.members.filter((member) => member.id !== id)
    this.#index += 1
  }

  commit(): void {
    this.#isCommitted = true
  }
}

const state = {
  featureLevel: 1,
  get: () => undefined,
  waitForApplied: () => Promise.resolve(true),
}

function without(id: string, changes: Partial<RequestedMemberChange> = {}): RequestedMemberChange {
  return {
    what: `remove ${id}`,
    waitMs: 0,
    timeoutMs: 5_000,
    isDone: ({ record }) => record.members.every((member) => member.id !== id),
    target: ({ record }) => {
      const target = clone(ConfigurationSchema, record)
      target.members = target.members.filter((member) => member.id !== id)
      return target
    },
    ...changes,
  }
}

test('a membership change fails with the name of the change in progress, or waits for that change if its time limit is long enough', async () => {
  const consensus = new ScriptedConsensus()
  consensus.isCommitting = false
  const changer = new MemberChanger(consensus, state, systemClock)
  const first = changer.run(without('n2'))
  await expect(changer.run(without('n3'))).rejects.toMatchObject({
    code: 'MEMBERSHIP_BUSY',
    detail: 'remove n2 is in progress; retry when it is done',
  })
  const second = changer.run(without('n3', { waitMs: 5_000 }))
  consensus.isCommitting = true
  consensus.commit()
  await first
  await second
  expect(consensus.targets.map(({ members }) => members.map(({ id }) => id))).toEqual([
    ['n1', 'n3'],
    ['n1'],
  ])
})

test('a membership change is retried if the leader has not yet committed an entry in its term, or if the learner has not caught up', async () => {
  const consensus = new ScriptedConsensus()
  consensus.answers.push('CHANGE_IN_PROGRESS', 'NOT_CAUGHT_UP', 'CHANGE_IN_PROGRESS')
  await new MemberChanger(consensus, state, systemClock).run(without('n2'))
  expect(consensus.targets).toHaveLength(1)
})

test('a membership change is computed again if another leader has changed the members in the meantime', async () => {
  const consensus = new ScriptedConsensus()
  consensus.moveOn = () => consensus.lose('n3')
  await new MemberChanger(consensus, state, systemClock).run(without('n2'))
  expect(consensus.targets.map(({ members }) => members.map(({ id }) => id))).toEqual([['n1']])
})

test('a membership change that no majority confirms in time is reported as safe to repeat, and a repetition after its commit proposes nothing', async () => {
  const consensus = new ScriptedConsensus()
  consensus.isCommitting = false
  const changer = new MemberChanger(consensus, state, systemClock)
  await expect(changer.run(without('n2', { timeoutMs: 100 }))).rejects.toMatchObject({
    code: 'PEER_UNREACHABLE',
    detail: expect.stringContaining('safe to repeat') as string,
  })
  consensus.commit()
  await changer.run(without('n2'))
  expect(consensus.targets).toHaveLength(1)
})

test('a membership change fails at a former leader, unless the configuration already contains the change', async () => {
  const lost = new ScriptedConsensus()
  lost.isCommitting = false
  const asked = new MemberChanger(lost, state, systemClock).run(without('n2'))
  lost.role = 'follower'
  await expect(asked).rejects.toMatchObject({ code: 'CLUSTER_NO_LEADER' })

  const retiring = new ScriptedConsensus()
  const done = new MemberChanger(retiring, state, systemClock).run(without('n1'))
  retiring.role = 'follower'
  await expect(done).rejects.toMatchObject({ code: 'CLUSTER_NO_LEADER' })
  await retiring.changeConfiguration(
    create(ConfigurationSchema, { members: [create(MemberSchema, { id: 'n2', voter: true })] }),
    1,
  )
  await new MemberChanger(retiring, state, systemClock).run(without('n1'))
})

/** An arbitrary method. */
const method = { name: 'test', request: DigestRequestSchema, answer: DigestAnswerSchema } as const

test('a call to the leader follows leader changes, returns a leader’s refusal immediately, and is repeated if the leader disconnects', async () => {
  const consensus = new ScriptedConsensus()
  const calls = new LeaderRequestForwarder(consensus, systemClock)
  calls.serve(method, ({ index }) => Promise.resolve({ digest: `here ${index}` }))
  expect(await calls.ask(method, { index: 1n }, 2_000)).toMatchObject({ digest: 'here 1' })

  consensus.leader = 'n2'
  const asked: string[] = []
  const answering = (answer: string | Problem) => (to: string, payload: Uint8Array) => {
    asked.push(`${to} ${decodeLeaderCall(method.request, payload).request.index}`)
    consensus.leader = to === 'n2' ? 'n3' : 'n2'
    if (answer instanceof Problem) return Promise.reject(answer)
    return Promise.resolve(encodePeerMessage(method.answer, { digest: answer }))
  }
  consensus.calls = [
    answering(new Problem('PEER_UNREACHABLE')),
    answering(new Problem('CLUSTER_NO_LEADER')),
    answering('there'),
    answering(new Problem('MEMBERSHIP_BUSY', { detail: 'remove n2 is under way' })),
  ]
  expect(await calls.ask(method, { index: 2n }, 5_000)).toMatchObject({ digest: 'there' })
  expect(asked).toEqual(['n2 2', 'n3 2', 'n2 2'])
  await expect(calls.ask(method, { index: 3n }, 5_000)).rejects.toMatchObject({
    code: 'MEMBERSHIP_BUSY',
    detail: 'remove n2 is under way',
  })
  consensus.leader = null
  await expect(calls.ask(method, {}, 600)).rejects.toMatchObject({ code: 'CLUSTER_NO_LEADER' })
})

test('the leader refuses malformed calls, and a controller that is not the leader refuses well-formed calls as well', async () => {
  const consensus = new ScriptedConsensus()
  new LeaderRequestForwarder(consensus, systemClock).serve(method, () => Promise.resolve({}))
  const handler = consensus.handlers.get('test')
  if (handler === undefined) throw new Error('it is served')
  const caller = { id: 'n2', publicKeySha256: new Uint8Array(32), leafPem: '', isMember: true }
  const wrong = ['[]', '{', '{"timeoutMs":1}', '{"request":[],"timeoutMs":1}', '{"timeoutMs":-1}']
  for (const text of wrong) {
    await expect(handler(caller, new TextEncoder().encode(text)), text).rejects.toMatchObject({
      code: 'COULD_NOT_VALIDATE',
    })
  }
  const right = encodeLeaderCall(method.request, {}, 1)
  consensus.leader = 'n1'
  const answer = decodePeerMessage(method.answer, await handler(caller, right))
  expect(answer).toMatchObject({ digest: '' })
  consensus.leader = 'n2'
  await expect(handler(caller, right)).rejects.toMatchObject({ code: 'CLUSTER_NO_LEADER' })
})

test.each([
  ['the leader has nothing to share', () => Promise.resolve(false)],
  ['the public key of a recipient is invalid', () => Promise.reject(new Error('it is no key'))],
])(
  'the reconciler retries, and logs only one line, while it cannot distribute shared secrets: %s',
  async (_title, wrapMissingSecrets) => {
    const consensus = new ScriptedConsensus()
    const said: string[] = []
    let shares = 0
    const steward = new MembershipReconciler({
      actions: new RecordedActions(),
      consensus,
      state,
      changer: new MemberChanger(consensus, state, systemClock),
      clock: systemClock,
      log: {
        info: (_fields: object, message: string) => said.push(message),
        warn: (_fields: object, message: string) => said.push(message),
      },
      secrets: {
        afterRemoval: () => Promise.resolve(),
        isRotationDue: () => false,
        admittedIdsWithExpiredTickets: () => [],
        rotateIfDue: () => Promise.resolve(),
        admittedIdsLackingSecrets: () => ['n2'],
        wrapMissingSecrets: () => {
          shares += 1
          return wrapMissingSecrets()
        },
      },
      featureLevel: { own: 1, raise: () => Promise.resolve() },
    })
    steward.start()
    await until('it has tried twice', () => shares === 2)
    steward.stop()
    expect(said.filter((line) => line.includes('distributed shared secrets'))).toEqual([])
    expect(said, 'the same message is logged once').toHaveLength(1)
    expect(said[0]).toContain('distributing shared secrets waits')
  },
)

test('a controller that repeats its admission request endlessly does not block the admission of another controller', async () => {
  const consensus = new ScriptedConsensus()
  // Without a leader, every request waits.
  consensus.leader = null
  const changer = new MemberChanger(consensus, state, systemClock)
  const calls = new LeaderRequestForwarder(consensus, systemClock)
  const log = { info: () => undefined }
  const clock = systemClock
  new AdmissionServer({
    actions: new RecordedActions(),
    consensus,
    state,
    changer,
    calls,
    clock,
    clusterId: 'c',
    generation: 1,
    log,
  })
  const enter = requirePresent(consensus.handlers.get(peerMethods.enter.name), 'it serves that')
  const ask = (id: string): Promise<unknown> => {
    const caller = { id, publicKeySha256: new Uint8Array(32), leafPem: '', isMember: false }
    const request = { clusterId: 'c', storeId: new Uint8Array(16), address: 'a.test:1' }
    const rest = { version: 'v0', featureLevel: 1, startedAtMs: 1 }
    const message = encodeAdmissionRequest({ ...request, ...rest })
    const payload = encodePeerMessage(peerMethods.enter.request, message)
    return enter(caller, payload).catch((error: unknown) => error)
  }
  const answers = Array.from({ length: 40 }, () => ask('n8'))
  const other = ask('n9')
  expect((await Promise.race(answers)) as Problem).toMatchObject({
    code: 'SERVER_TOO_MANY_REQUESTS',
  })
  consensus.leader = 'n2'
  const { answer } = peerMethods.enter
  const yes = encodePeerMessage(answer, { outcome: 'added' })
  consensus.calls = Array.from({ length: 3 }, () => () => Promise.resolve(yes))
  const heard = decodePeerMessage(answer, (await other) as Uint8Array)
  expect(heard).toMatchObject({ outcome: 'added' })
})
