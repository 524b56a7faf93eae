import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import {
  type AdmissionAnswerSchema,
  type AdmissionRequest,
  AdmissionRequestSchema,
} from '../../../proto/gen/peer_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import { Problem } from '../../lib/problems.ts'
import type { ActionRecorder } from '../../ports/membership.ts'
import type { PeerCaller } from '../peer-channel.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { NodeId } from '../../raft/types.ts'
import { decodePeerMessage, encodePeerMessage } from '../peer/peer-message.ts'
import { peerMethods } from '../peer/peer-methods.ts'
import type { MemberChanger } from './member-changer.ts'
import {
  findAdmission,
  type MembershipStateView,
  type MembershipConsensus,
} from './membership-consensus.ts'
import {
  type AdmissionCaller,
  type AdmissionContext,
  type AdmissionRequestFacts,
  encodeAdmissionRequest,
  decodeAdmissionRequest,
  type AdmissionVerdict,
  decideAdmission,
} from './decide-admission.ts'
import type { LeaderRequestForwarder } from './leader-request-forwarder.ts'
import { membershipLimits } from './limits.ts'
import { readFixedLengthBytes, readControllerId } from './messages.ts'
import { isMembershipChangeFinished, admissionKeySha256 } from './member-keys.ts'
import { waitUntil } from '../../lib/runtime/wait.ts'

interface AdmissionServerDeps {
  readonly consensus: MembershipConsensus
  readonly state: MembershipStateView
  readonly changer: MemberChanger
  readonly calls: LeaderRequestForwarder
  readonly clock: Clock
  readonly actions: ActionRecorder
  readonly clusterId: string
  readonly generation: number
  readonly log: { info(fields: object, message: string): void }
}

type AnswerInit = MessageInitShape<typeof AdmissionAnswerSchema>

/**
 * Maximum time that an admission request occupies this controller, regardless of the client's
 * timeout.
 */
const ENTER_TIMEOUT_MS = 8_000
/**
 * Maximum wait for other changes of this leader to complete: admissions that are requested at the
 * same time run one after another.
 */
const TURN_MS = 6_000

/**
 * Serves admission requests. Any member accepts a request and forwards it to the leader, which
 * decides and changes the configuration.
 */
export class AdmissionServer {
  readonly #deps: AdmissionServerDeps
  /** Ids of the controllers whose requests are in progress. */
  readonly #entering: NodeId[] = []

  constructor(deps: AdmissionServerDeps) {
    this.#deps = deps
    deps.calls.serve(peerMethods.enterByLeader, async (message, timeoutMs) => {
      const { publicKeySha256, request } = message
      const caller = {
        id: readControllerId(message.id, 'id'),
        publicKeySha256: readFixedLengthBytes(publicKeySha256, 'publicKeySha256', 32),
      }
      return await this.#enterHere(caller, requestIn(request), timeoutMs)
    })
    const { peers } = deps.consensus
    const { name } = peerMethods.enter
    peers.serve(name, 'controllers', (caller, payload) => this.#onEnter(caller, payload))
  }

  async #onEnter({ id, publicKeySha256 }: PeerCaller, payload: Uint8Array): Promise<Uint8Array> {
    const { entriesMax, entriesOfOneMax } = membershipLimits
    const own = this.#entering.filter((asking) => asking === id).length
    // TLS has proven the id, so the limit per id prevents a removed controller from blocking
    // others.
    if (this.#entering.length >= entriesMax || own >= entriesOfOneMax) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS')
    }
    this.#entering.push(id)
    try {
      const { enter, enterByLeader } = peerMethods
      const request = encodeAdmissionRequest(requestIn(decodePeerMessage(enter.request, payload)))
      const message = { id, publicKeySha256, request }
      const answer = await this.#deps.calls.ask(enterByLeader, message, ENTER_TIMEOUT_MS)
      return encodePeerMessage(enter.answer, answer)
    } finally {
      this.#entering.splice(this.#entering.indexOf(id), 1)
    }
  }

  async #enterHere(
    caller: AdmissionCaller,
    request: AdmissionRequestFacts,
    timeoutMs: number,
  ): Promise<AnswerInit> {
    const { consensus, state, changer, clock, log, actions } = this.#deps
    const deadlineMs = clock.monotonicMs() + timeoutMs
    // The request needs the latest state: another controller may just have committed an admission.
    const index = await consensus.readIndex()
    if (!(await state.waitForApplied(index, timeoutMs))) throw new Problem('INDEX_NOT_REACHED')
    if (
      !(await waitUntil(clock, deadlineMs, () =>
        isMembershipChangeFinished(consensus.configuration()),
      ))
    ) {
      const detail = 'another membership change is in progress; retry when it is done'
      throw new Problem('MEMBERSHIP_BUSY', { detail })
    }
    const first = this.#judge(caller, request)
    if (first.verdict === 'refused') return this.#refusal(first)
    if (first.verdict === 'member') return this.#accepted('member')
    const outcome = first.verdict
    await changer.run({
      what: `letting ${caller.id} in`,
      waitMs: Math.min(timeoutMs, TURN_MS),
      timeoutMs: Math.max(0, deadlineMs - clock.monotonicMs()),
      isDone: () => this.#judge(caller, request).verdict === 'member',
      target: () => {
        const verdict = this.#judge(caller, request)
        if ('target' in verdict) return verdict.target
        throw new Problem('MEMBERSHIP_REFUSED', {
          detail: verdict.verdict === 'refused' ? verdict.detail : 'it is a member meanwhile',
        })
      },
    })
    const { address } = request
    const how = outcome === 'added' ? 'was admitted' : 'was re-admitted with a new data folder'
    log.info({ member: caller.id, address }, `${caller.id} ${how}, as a learner`)
    const action = outcome === 'added' ? 'member-add' : 'member-return'
    void actions.note({ action, target: caller.id, outcome: 'done' }, SYSTEM_ACTOR)
    return this.#accepted(outcome)
  }

  #judge(caller: AdmissionCaller, request: AdmissionRequestFacts): AdmissionVerdict {
    const { clusterId } = this.#deps
    const { record, index: configurationIndex } = this.#deps.consensus.configuration()
    const admission = findAdmission(this.#deps.state, caller.id)
    const context: AdmissionContext = {
      record,
      configurationIndex,
      clusterId,
      featureLevel: this.#deps.state.featureLevel,
      admitted:
        admission === undefined
          ? null
          : { keySha256: admissionKeySha256(admission), isVoter: admission.isVoter },
      liveStartedAtMs: this.#liveStartedAtMs(caller.id),
    }
    return decideAdmission(caller, request, context)
  }

  /**
   * Start time of the process that is connected under this member's id; null if none is connected.
   */
  #liveStartedAtMs(id: NodeId): number | null {
    const { consensus } = this.#deps
    // This controller is running under its id, so any other process with the same id is a
    // duplicate.
    if (id === consensus.selfId) return 0
    const peer = consensus.peerStatuses().find((known) => known.id === id)
    return peer?.isConnected === true ? peer.startedAtMs : null
  }

  #refusal({ reason, detail }: AdmissionVerdict & { readonly verdict: 'refused' }): AnswerInit {
    const { index } = this.#deps.consensus.configuration()
    return { outcome: 'refused', reason, detail, configurationIndex: BigInt(index) }
  }

  #accepted(outcome: 'member' | 'added' | 'returning'): AnswerInit {
    const { clusterId, generation, consensus } = this.#deps
    const { record, index } = consensus.configuration()
    const configuration = toBinary(ConfigurationSchema, record)
    return { outcome, clusterId, generation, configuration, configurationIndex: BigInt(index) }
  }
}

/**
 * Decodes the facts of an admission request.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
function requestIn(message: AdmissionRequest | undefined): AdmissionRequestFacts {
  const request = decodeAdmissionRequest(message ?? create(AdmissionRequestSchema))
  if (parseHostPort(request.address) !== null) return request
  const detail = 'the cluster address must be host:port (option cluster.advertise)'
  throw new Problem('COULD_NOT_VALIDATE', { detail })
}
