import { create } from '@bufbuild/protobuf'
import { HelloSchema } from '../../proto/gen/mesh_pb.ts'
import { RollbackDetector } from '../../src/cluster/mesh/rollback-detector.ts'
import { assert } from '../../src/lib/assert.ts'
import type { Index, Message, NodeId } from '../../src/raft/types.ts'
import type { RaftCore } from '../../src/raft/core.ts'

/** A node and its disk. The disk survives crashes. */
interface Announced {
  readonly id: NodeId
  readonly core: RaftCore
  readonly platter: { readonly boot: number }
}

/**
 * Collects what honest disks report about themselves when they connect, and compares it with their
 * earlier reports. No matter which crashes, elections, truncations and snapshots happen, the
 * detector must not judge one of them rolled back.
 */
export class Announcements {
  readonly #witnesses = new Map<Announced['platter'], RollbackDetector>()

  /**
   * Records a message as a peer's mesh would, but at the earliest possible moment: when it leaves.
   */
  onSend({ id, platter }: Announced, message: Message): void {
    const isPreVote =
      (message.type === 'voteRequest' || message.type === 'voteResponse') && message.pre
    if (isPreVote) return
    const witness = this.#of(platter)
    witness.noteTerm(id, message.term)
    if (message.type === 'appendResponse' && message.success) {
      witness.noteMatch(id, message.term, message.matchIndex)
    }
  }

  onApplied({ id, platter }: Announced, index: Index): void {
    this.#of(platter).noteApplied(id, BigInt(platter.boot), index)
  }

  /**
   * Records that the node connects now.
   * @param applied highest index that its state machine has reported to the node.
   */
  greet({ id, platter, core }: Announced, applied: Index): void {
    const { onDisk, isOnDiskWhole, owed } = core.fullStatus
    if (!isOnDiskWhole) return
    const index = Math.max(onDisk.last.index, applied)
    const term = index === onDisk.last.index ? onDisk.last.term : 0
    const hello = create(HelloSchema, {
      boot: BigInt(platter.boot),
      startedAtMs: BigInt(platter.boot),
      currentTerm: BigInt(onDisk.term),
      last: { term: BigInt(term), index: BigInt(index) },
      ...(owed === null ? {} : { owed: { term: BigInt(owed.term), index: BigInt(owed.index) } }),
    })
    const fault = this.#of(platter).judge(id, hello, true)
    assert(fault === null, `${id} is taken for ${fault} at ${onDisk.term}: ${term}/${index}`)
  }

  #of(platter: Announced['platter']): RollbackDetector {
    const witness = this.#witnesses.get(platter) ?? new RollbackDetector(1)
    this.#witnesses.set(platter, witness)
    return witness
  }
}
