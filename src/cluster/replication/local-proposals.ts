import { create, toBinary } from '@bufbuild/protobuf'

import { CommandSchema } from '../../../proto/gen/command_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import { encodeTrace } from '../../lib/trace-context.ts'
import type { AuditRecord } from '../../ports/audit.ts'
import { commandFeatureLevel } from '../../ports/feature-level.ts'
import type { AppliedEntry } from '../../ports/replicated-state-machine.ts'
import {
  type Actor,
  actorFault,
  actorIdentityId,
  type LoggedActor,
  createSystemActor,
} from '../../ports/actor.ts'
import type { AppliedProposal, ProposalInput } from '../../ports/proposer.ts'
import type { ProposalForwardRefusalCode } from '../thread-channel.ts'
import { type OutstandingProposal, OutstandingProposals } from './outstanding-proposals.ts'
import { packProposals } from './proposal-codec.ts'

export interface ProposalOptions {
  /** 16 bytes. */
  readonly storeId: Uint8Array
  /** Number of starts of this store. */
  readonly boot: number
  /** Time after which a write without an outcome is rejected. */
  readonly proposeTimeoutMs: number
  readonly outstandingMax: number
  readonly outstandingSpanMax: number
  /**
   * Maximum bytes of outstanding commands; further writes are refused with the error for too many
   * writes.
   */
  readonly outstandingBytesMax: number
}

interface ProposalsDeps {
  /** Id of this controller, the actor of its own writes. */
  readonly selfId: string
  readonly clock: Clock
  /** Packed by proposal-codec.ts; the buffer is transferred. */
  readonly send: (proposals: Uint8Array<ArrayBuffer>) => void
  readonly hasLeader: () => boolean
  /**
   * The cluster's feature level in the state of this controller. A write that requires a level is
   * logged after the entry that raised the level.
   */
  readonly featureLevel: () => number
  /**
   * Called with the audit record of each write that this controller proposed, if the write has one,
   * even if its caller has stopped waiting.
   */
  readonly onAudited?: (record: AuditRecord, traceId?: string) => void
}

/**
 * Tracks the writes of this controller, from the request until this controller has applied them and
 * knows the outcome.
 */
export class LocalProposals {
  readonly #options: ProposalOptions
  readonly #deps: ProposalsDeps
  readonly #storeIdHex: string
  readonly #outstanding: OutstandingProposals
  /** Sequence numbers of the proposals in the next flush. */
  #queued: number[] = []
  #isClosed = false

  constructor(options: ProposalOptions, deps: ProposalsDeps) {
    this.#options = options
    this.#deps = deps
    this.#storeIdHex = Buffer.from(options.storeId).toString('hex')
    this.#outstanding = new OutstandingProposals({
      countMax: options.outstandingMax,
      spanMax: options.outstandingSpanMax,
      bytesMax: options.outstandingBytesMax,
    })
  }

  get count(): number {
    return this.#outstanding.count
  }

  /**
   * Proposes a write and waits for its outcome.
   * @throws {Problem} as {@link Proposer.propose}.
   */
  async propose(input: ProposalInput): Promise<AppliedProposal> {
    if (this.#isClosed) throw new Problem('CLUSTER_NO_LEADER')
    const actor = this.#named(input.actor)
    const fault = actorFault(actor)
    // @guard authority-from-absence--proposer
    if (fault !== null) throw new Problem('UNAUTHORIZED', { detail: fault })
    const level = Math.max(commandFeatureLevel(input.kind), input.level ?? 1)
    this.#refuseAbove(level)
    const caller = actorIdentityId(actor)
    if (!this.#outstanding.hasRoomFor(caller)) throw new Problem('SERVER_TOO_MANY_REQUESTS')
    const sequence = this.#outstanding.nextSequence
    const command = this.#encode(input, actor, { level, sequence })
    return await new Promise<AppliedProposal>((resolve, reject) => {
      this.#outstanding.add({
        sequence,
        command,
        ...(input.trace === undefined ? {} : { trace: input.trace }),
        caller,
        deadlineMs: this.#deps.clock.monotonicMs() + this.#options.proposeTimeoutMs,
        resolve,
        reject,
        stage: 'queued',
        isFateOpen: false,
        lastRefusal: null,
      })
      this.#queued.push(sequence)
      // One batch per turn of the event loop: concurrent requests share one message, one disk write
      // and one round trip.
      if (this.#queued.length === 1) setImmediate(() => this.#flush())
    })
  }

  /**
   * Completes a proposal. Called for each applied entry, which may be the outcome of a proposal of
   * this controller.
   */
  settle({ index, origin, outcome, audit }: AppliedEntry): void {
    if (origin === null) return
    if (origin.storeId !== this.#storeIdHex || origin.boot !== this.#options.boot) return
    const proposal = this.#outstanding.get(origin.sequence)
    if (audit !== null) this.#deps.onAudited?.(audit, proposal?.trace?.traceId)
    if (proposal === undefined) return
    this.#outstanding.remove(origin.sequence)
    // The command took effect inside a snapshot that was installed meanwhile, so its outcome is
    // unknown.
    if (outcome === null) proposal.reject(new Problem('OUTCOME_UNKNOWN'))
    else proposal.resolve({ index, outcome })
  }

  onRefused(sequences: readonly number[], code: ProposalForwardRefusalCode): void {
    for (const sequence of sequences) {
      const proposal = this.#outstanding.get(sequence)
      if (proposal === undefined) continue
      proposal.stage = 'parked'
      proposal.lastRefusal = code
      if (code !== 'TOO_LARGE') continue
      this.#outstanding.remove(sequence)
      proposal.reject(new Problem('REQUEST_ENTITY_TOO_LARGE'))
    }
  }

  /**
   * Proposes outstanding writes again, because the former leader may or may not have logged them.
   * The state machine recognizes the origin of a command, so a command that was logged twice takes
   * effect once.
   */
  proposeAgain(): void {
    if (this.#outstanding.parkSent()) this.sendParked()
  }

  sendParked(): void {
    if (this.#outstanding.count > 0 && this.#deps.hasLeader()) {
      this.#send(this.#outstanding.inStage('parked'))
    }
  }

  /** Called periodically: rejects writes past their deadline, and sends parked ones again. */
  sweep(): void {
    this.#outstanding.expire(this.#deps.clock.monotonicMs())
    this.sendParked()
  }

  /**
   * Rejects all outstanding proposals before their outcome is known. New proposals are still
   * accepted.
   */
  giveUp(): void {
    this.#outstanding.abandon()
  }

  /** Rejects outstanding and new proposals, because this controller applies nothing more. */
  close(): void {
    this.#isClosed = true
    this.#outstanding.abandon()
  }

  #flush(): void {
    const queued = this.#queued
    this.#queued = []
    const leaving: OutstandingProposal[] = []
    for (const sequence of queued) {
      const proposal = this.#outstanding.get(sequence)
      if (proposal?.stage === 'queued') leaving.push(proposal)
    }
    this.#send(leaving)
  }

  #send(proposals: readonly OutstandingProposal[]): void {
    if (proposals.length === 0 || this.#isClosed) return
    for (const proposal of proposals) proposal.stage = 'sent'
    const packed = proposals.map(({ sequence, command, trace }) => ({
      sequence,
      command,
      trace: encodeTrace(trace),
    }))
    this.#deps.send(packProposals(packed))
  }

  /**
   * Adds the name of this controller to an actor without a name, so that the code that proposes the
   * controller's own writes need not know it.
   */
  #named<A extends LoggedActor>(actor: A): A | Actor {
    if (actor?.case !== 'system' || actor.value.name !== '') return actor
    return createSystemActor({ ...actor.value, name: `controller:${this.#deps.selfId}` })
  }

  /**
   * Refuses a write that requires a higher level, because some voter may not support it, and any
   * voter may lead.
   */
  #refuseAbove(level: number): void {
    const inForce = this.#deps.featureLevel()
    if (level <= inForce) return
    throw new Problem('FEATURE_LEVEL_NOT_RAISED', {
      detail: `it needs feature level ${level} and the cluster is at ${inForce}; 'flotilla cluster status' shows which controllers to upgrade`,
    })
  }

  #encode(
    input: ProposalInput,
    actor: Actor,
    { level, sequence }: { readonly level: number; readonly sequence: number },
  ): Uint8Array {
    const { storeId, boot } = this.#options
    return toBinary(
      CommandSchema,
      create(CommandSchema, {
        origin: {
          storeId,
          boot: BigInt(boot),
          sequence: BigInt(sequence),
          lowestOutstanding: BigInt(Math.min(this.#outstanding.lowest, sequence)),
        },
        ...(input.request === undefined ? {} : { request: input.request }),
        actor,
        kind: input.kind,
        level,
        payload: input.payload,
        judgedOn: (input.judgedOn ?? []).map(({ entity, id, revision }) => ({
          entity,
          id,
          revision: BigInt(revision),
        })),
      }),
    )
  }
}
