import { create, toBinary } from '@bufbuild/protobuf'
import { createHash } from 'node:crypto'
import type { KindName } from '../../src/entities/kind-records.ts'
import {
  CommandKind,
  EntityWriteSchema,
  RestoreBeginSchema,
  RestoreChunkSchema,
  RestoreEndSchema,
  SessionCreateSchema,
} from '../../proto/gen/command_pb.ts'
import { compressLines, blockLine } from '../../src/fsm/records/record-blocks.ts'
import { restoredKinds } from '../../src/fsm/cluster/replacement.ts'
import { assert } from '../../src/lib/assert.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { Random } from '../../src/lib/random.ts'
import { createSystemActor } from '../../src/ports/actor.ts'
import type { AppliedEntry } from '../../src/ports/replicated-state-machine.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import type { Entry, Index } from '../../src/raft/types.ts'
import { anySystem } from '../support/commands.ts'
import type { Asker } from './asker.ts'
import { REGISTERS } from './clients.ts'
import type { Controller } from './controller.ts'
import { hasBroughtBack } from './log-time-resets.ts'
import type { Misfortune } from './plan.ts'
import type { RecordsModel } from './records-model.ts'
import { RestoreModel } from './restore-model.ts'
import type { Tally } from './tally.ts'
import type { VirtualLoop } from './virtual-loop.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

/** Functions that restores need from the simulated world. */
export interface RestorerWorld {
  readonly loop: VirtualLoop
  readonly tally: Tally
  readonly asker: Asker
  readonly records: RecordsModel
  readonly isServing: boolean
  running(): readonly Controller[]
  leader(): Controller | null
}

export type RestoreWish = Extract<Misfortune, { type: 'restore' }>

interface Content {
  readonly id: string
  readonly chunks: readonly { readonly bytes: Uint8Array; readonly endsBlock: boolean }[]
  readonly sha256: Uint8Array
  readonly clusterId: string
}

const TRIES_MAX = 25
const CHUNK_BYTES_MAX = 3_000
const passing = new Set(['OUTCOME_UNKNOWN', 'CLUSTER_NO_LEADER', 'SERVER_TOO_MANY_REQUESTS'])
const utf8 = new TextEncoder()

/**
 * Operators who restore a backup into the running cluster, command by command, through any
 * controller: some abandon the restore, some disconnect, two restore at the same time. The result
 * is compared with a model: completely or not at all, on every controller (I21).
 */
export class Restorers {
  open = 0
  readonly #world: RestorerWorld
  readonly #model = new RestoreModel()
  /** Index at which the backup of a restore was taken. */
  readonly #takenAt = new Map<string, Index>()
  /** Indexes of restore entries; a restore entry that replaces nothing must change no record. */
  readonly #steps = new Set<Index>()
  #known: Index = 0
  #staged: string | null = null

  constructor(world: RestorerWorld) {
    this.#world = world
  }

  /**
   * Begins a restore.
   * @param crash ends a controller's process for a while.
   */
  begin(wish: RestoreWish, chance: Random, crash: (controller: Controller | null) => void): void {
    this.open += 1
    void this.#run(wish, chance, crash).finally(() => {
      this.open -= 1
    })
  }

  /**
   * Processes every entry that a controller applies. At the first controller, it updates the model;
   * at each controller, it checks the records.
   */
  onApplied(controller: Controller, entry: Entry, applied: AppliedEntry): void {
    if (entry.index > this.#known) this.#onFirstApplied(entry, applied)
    if (this.#steps.has(entry.index)) this.assertRecords(controller, entry.index)
  }

  /** I21: the records match the history with all its restores. */
  assertRecords(controller: Controller, index: Index): void {
    const { machine } = controller.life ?? {}
    assert(machine !== undefined, 'it runs')
    const { registers, services, kept, ended } = this.#world.records.at(index)
    const held = {
      service: [...registers.keys(), ...services],
      revocation: [...kept],
      apiSession: [...ended],
    }
    for (const [kind, wanted] of Object.entries(held) as [KindName, string[]][]) {
      const [have, want] = [[...machine.ids(kind)].sort().join(), wanted.sort().join()]
      assert(
        have === want,
        `I21: ${controller.id} at ${index} has other records of ${kind}: ${differing(have, want)}`,
      )
    }
    for (const [id, value] of registers) {
      const now = machine.get('service', id)?.['maxIdleTimeMillis']
      assert(
        now === value,
        `I21: ${id} is ${String(now)} on ${controller.id} at ${index}, but must be ${value}`,
      )
    }
  }

  #onFirstApplied(entry: Entry, applied: AppliedEntry): void {
    assert(entry.index === this.#known + 1, 'entries are first applied in their order')
    this.#known = entry.index
    const { outcome } = applied
    const step = this.#model.onEntry(entry, outcome === null)
    if (hasBroughtBack(entry, applied)) this.#model.onLogTimeReset()
    if (step === null && outcome?.ok === true) this.#noteOther(entry, outcome.id)
    if (step === null || outcome === null) return
    this.#steps.add(entry.index)
    const came = outcome.ok ? 'done' : outcome.code
    assert(came === step.code, `I21: entry ${entry.index} is ${came}, but must be ${step.code}`)
    if (step.swapped === null) return
    this.#world.records.restored(entry.index, this.#takenAt.get(step.swapped) ?? 0)
    this.#world.tally.note('restore done')
  }

  /** Records a write of `writeOthers`. */
  #noteOther({ index }: Entry, id: string): void {
    const [type] = /^(kept|ended)-/.exec(id) ?? []
    if (type === 'kept-') this.#world.records.created(index, 'kept', id)
    if (type === 'ended-') this.#world.records.created(index, 'ended', id)
  }

  async #run(
    wish: RestoreWish,
    chance: Random,
    crash: (controller: Controller | null) => void,
  ): Promise<void> {
    const { asker, tally } = this.#world
    const content = this.#takeBackup(wish, chance)
    if (content === null) return
    await this.#writeOthers(content.id)
    await asker.pause(wish.lagMs)
    if (!(await this.#begin(content, wish, chance))) return
    tally.note('restore begun')
    const fatal = wish.isLeaderKilled ? Math.floor(content.chunks.length / 2) : -1
    for (const number of content.chunks.keys()) {
      if (number === fatal) {
        crash(this.#world.leader())
        tally.note('leader killed while a restore was staged')
      }
      if (wish.ending === 'left' && number === content.chunks.length - 1) break
      if ((await this.#stage(content, number, chance)) !== 'done') return
    }
    await this.#end(content, wish, chance)
  }

  /** Takes a backup of a controller's current state, cut into many chunks. */
  #takeBackup(wish: RestoreWish, chance: Random): Content | null {
    const running = this.#world.running()
    const state = running[chance.integer(0, running.length - 1)]?.state ?? null
    // The state of a controller that has just begun to replay the log may lack records with which
    // the cluster began.
    const isFormed = state !== null && REGISTERS.every((id) => state.get('service', id))
    if (!isFormed) return null
    const id = `restore-${this.#takenAt.size + 1}`
    this.#takenAt.set(id, state.position.index)
    const chunks = chunksOf(state, wish)
    const sum = createHash('sha256')
    for (const { bytes } of chunks) sum.update(bytes)
    const clusterId = wish.isOfOther ? 'another' : state.clusterId
    return { id, chunks, sha256: Uint8Array.from(sum.digest()), clusterId }
  }

  /**
   * Writes, after the backup, a record of a kind that a restore keeps, and one of a kind that it
   * deletes.
   */
  async #writeOthers(id: string): Promise<void> {
    const json = utf8.encode(canonicalJson({ type: 'IDENTITY', expiresAt: null }))
    const write = create(EntityWriteSchema, { entity: 'revocation', id: `kept-${id}`, json })
    await this.#propose({
      kind: CommandKind.ENTITY_CREATE,
      payload: toBinary(EntityWriteSchema, write),
      actor: anySystem,
    })
    const session = create(SessionCreateSchema, {
      id: `ended-${id}`,
      identityId: 'admin',
      authenticatorId: 'admin-updb',
      ipAddress: '127.0.0.1',
    })
    await this.#propose({
      kind: CommandKind.SESSION_CREATE,
      payload: toBinary(SessionCreateSchema, session),
      actor: createSystemActor({ name: 'test', identityId: 'admin' }),
    })
  }

  /**
   * Waits for another staged restore or discards it.
   * @returns whether this one is now staged.
   */
  async #begin(content: Content, wish: RestoreWish, chance: Random): Promise<boolean> {
    const { id, chunks, sha256, clusterId } = content
    const message = create(RestoreBeginSchema, {
      id,
      chunks: chunks.length,
      sha256,
      clusterId,
      featureLevel: 2,
      bytes: String(chunks.reduce((total, { bytes }) => total + bytes.length, 0)),
      allowsOtherCluster: wish.isOfOther,
    })
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const came = await this.#propose({
        kind: CommandKind.RESTORE_BEGIN,
        payload: toBinary(RestoreBeginSchema, message),
        actor: anySystem,
      })
      if (came === 'done') {
        this.#staged = id
        return true
      }
      if (came !== 'RESTORE_UNDER_WAY') return false
      this.#world.tally.note('restore refused beside another')
      if (chance.next() < 0.15 && this.#staged !== null) await this.#abandon(this.#staged)
      else await this.#world.asker.pause(chance.integer(100, 800))
    }
    return false
  }

  async #stage({ id, chunks }: Content, number: number, chance: Random): Promise<string> {
    await this.#world.asker.pause(chance.integer(1, 40))
    const { bytes, endsBlock } = chunks[number] ?? { bytes: new Uint8Array(), endsBlock: true }
    const message = create(RestoreChunkSchema, { id, number, bytes, endsBlock })
    return await this.#propose({
      kind: CommandKind.RESTORE_CHUNK,
      payload: toBinary(RestoreChunkSchema, message),
      actor: anySystem,
    })
  }

  async #end({ id, sha256 }: Content, { ending }: RestoreWish, chance: Random): Promise<void> {
    if (ending === 'left') return
    if (ending === 'abandoned') {
      await this.#abandon(id)
      return
    }
    const payload = toBinary(RestoreEndSchema, create(RestoreEndSchema, { id, sha256 }))
    const input = { kind: CommandKind.RESTORE_END, payload, actor: anySystem }
    const came = await this.#propose(input)
    if (came !== 'done' || ending !== 'swapped twice') return
    // Repeats the command like a client that never received the answer: writes made after the
    // restore must remain.
    await this.#world.asker.pause(chance.integer(200, 1_200))
    await this.#propose(input)
    this.#world.tally.note('restore ended again')
  }

  async #abandon(id: string): Promise<void> {
    const message = create(RestoreEndSchema, { id, isAbandoned: true })
    const payload = toBinary(RestoreEndSchema, message)
    const came = await this.#propose({
      kind: CommandKind.RESTORE_END,
      payload,
      actor: anySystem,
    })
    if (came === 'done') this.#world.tally.note('restore abandoned')
  }

  /**
   * Retries until the outcome is known.
   * @returns done, the code of the refusal, or that it stopped retrying.
   */
  async #propose(input: ProposalInput): Promise<string> {
    const { asker, loop } = this.#world
    for (let attempt = 0; attempt < TRIES_MAX && this.#world.isServing; attempt += 1) {
      const running = this.#world.running()
      const controller = running[attempt % Math.max(1, running.length)]
      const came = controller === undefined ? 'OUTCOME_UNKNOWN' : await this.#ask(controller, input)
      if (!passing.has(came)) return came
      await asker.pause(50 + (loop.steps % 200))
    }
    return 'gave up'
  }

  async #ask(controller: Controller, input: ProposalInput): Promise<string> {
    try {
      const answer = await this.#world.asker.ask(
        controller,
        async ({ clusterNode }) => await clusterNode.propose(input),
      )
      if (answer === 'over') return 'OUTCOME_UNKNOWN'
      return answer.outcome.ok ? 'done' : answer.outcome.code
    } catch (error) {
      if (error instanceof Problem) return error.code
      throw error
    }
  }
}

/** The restored records in `blocks` blocks, each cut into `chunksPerBlock` chunks. */
function chunksOf(state: ClusterState, { blocks, chunksPerBlock }: RestoreWish): Content['chunks'] {
  const lines = [...restoredKinds].flatMap((kind) => {
    const table = state.table(kind)
    return [...table.rows.values()].map(({ record }) => blockLine(kind, table.stored(record)))
  })
  const share = Math.ceil(lines.length / blocks)
  return Array.from({ length: blocks }, (_, at) => lines.slice(at * share, (at + 1) * share))
    .flatMap((part) => [...compressLines(part)])
    .flatMap((block) => {
      const size = Math.min(CHUNK_BYTES_MAX, Math.ceil(block.length / chunksPerBlock))
      return Array.from({ length: Math.ceil(block.length / size) }, (_, at) => ({
        bytes: block.slice(at * size, (at + 1) * size),
        endsBlock: (at + 1) * size >= block.length,
      }))
    })
}

const DIFFERENCES_SHOWN = 5

function differing(have: string, want: string): string {
  const [own, wanted] = [have, want].map((text) => text.split(',').filter((id) => id !== ''))
  const more = (own ?? []).filter((id) => wanted?.includes(id) !== true)
  const missing = (wanted ?? []).filter((id) => own?.includes(id) !== true)
  const shown = (ids: readonly string[]): string => ids.slice(0, DIFFERENCES_SHOWN).join(' ')
  return `${more.length} too many (${shown(more)}), ${missing.length} missing (${shown(missing)})`
}
