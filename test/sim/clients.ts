import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  CommandSchema,
  EntityWriteSchema,
  FormSchema,
} from '../../proto/gen/command_pb.ts'
import { initialSeedRecords } from '../../src/fsm/seed/seed.ts'
import { assert } from '../../src/lib/assert.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { Random } from '../../src/lib/random.ts'
import type { AppliedEntry } from '../../src/ports/replicated-state-machine.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import type { Entry, Index } from '../../src/raft/types.ts'
import type { Asker } from './asker.ts'
import type { Controller } from './controller.ts'
import type { Load } from './plan.ts'
import type { RecordsModel } from './records-model.ts'
import type { Tally } from './tally.ts'
import type { VirtualLoop } from './virtual-loop.ts'
import { anySystem, commandData } from '../support/commands.ts'

/** Functions that clients need from the simulated world. */
export interface ClientWorld {
  readonly loop: VirtualLoop
  readonly chance: Random
  readonly tally: Tally
  readonly load: Load
  readonly asker: Asker
  readonly records: RecordsModel
  readonly isServing: boolean
  readonly isAskedToWriteLess: boolean
  running(): readonly Controller[]
}

/** Outcome of an operation as its client knows it. */
type Fate = 'open' | 'done' | 'refused' | 'unknown'

interface Operation {
  readonly number: number
  readonly begunMs: number
  /** Highest index at which any operation had completed when this one began. */
  readonly completedBefore: Index
  fate: Fate
}

export const REGISTERS = ['register-1', 'register-2', 'register-3']
const utf8 = new TextEncoder()
const text = new TextDecoder()

/**
 * Commands of the first log, which create the registers.
 * @param isRestored adds what a restoring cluster needs: the feature level, and an identity that
 * logs in.
 */
export function formingCommands(isRestored: boolean): readonly Uint8Array[] {
  const registers = REGISTERS.map((id) => {
    const payload = writeOf(id, { name: id, encryptionRequired: true, maxIdleTimeMillis: 0 })
    return commandData(CommandKind.ENTITY_CREATE, payload)
  })
  return isRestored ? [formCommand(), ...registers] : registers
}

function formCommand(): Uint8Array {
  const records = initialSeedRecords({
    adminId: 'admin',
    adminAuthenticatorId: 'admin-updb',
    adminName: 'admin',
    passwordHash: '$argon2id$test',
  }).filter(({ entity }) => ['authPolicy', 'authenticator', 'identity'].includes(entity))
  const form = create(FormSchema, { clusterId: 'simulated', records, featureLevel: 2 })
  return commandData(CommandKind.FORM, toBinary(FormSchema, form))
}

function writeOf(id: string, fields: Parameters<typeof canonicalJson>[0]): Uint8Array<ArrayBuffer> {
  const json = utf8.encode(canonicalJson(fields))
  return toBinary(EntityWriteSchema, create(EntityWriteSchema, { entity: 'service', id, json }))
}

/** Effect of a client's entry. */
interface Effect {
  readonly number: number
  /** The register written; null for a service created. */
  readonly register: string | null
  /** The service created; null for a register written. */
  readonly service: string | null
}

/**
 * Clients of the cluster. They write registers, create services and read, each through an arbitrary
 * controller. If the outcome is unknown, they repeat the request with the same request ID. They
 * compare all answers with the single history of the cluster (I14, I15).
 */
export class Clients {
  acknowledged = 0
  readonly #world: ClientWorld
  readonly #operations = new Map<number, Operation>()
  /** Operation → index at which it took effect. */
  readonly #effects = new Map<number, Index>()
  /** Effect of each applied index; null for entries of others. */
  readonly #entries = new Map<Index, Effect | null>()
  readonly #outcomes = new Map<Index, string>()
  #completedIndex: Index = 0
  #nextNumber = 1
  #open = 0

  constructor(world: ClientWorld) {
    this.#world = world
    for (let client = 0; client < world.load.clients; client += 1) void this.#serve()
  }

  get openOperations(): number {
    return this.#open
  }

  /** Called for every entry that a controller applies, with its outcome. */
  onApplied(controller: Controller, entry: Entry, applied: AppliedEntry): void {
    const outcome = JSON.stringify(applied.outcome)
    const known = this.#outcomes.get(entry.index)
    assert(
      known === undefined || known === outcome,
      `I5: ${controller.id} has another outcome at ${entry.index}`,
    )
    if (known === undefined) this.#onFirstApplied(entry, applied, outcome)
    const effect = this.#entries.get(entry.index)
    if (effect?.register === null || effect === null || effect === undefined) return
    const record = controller.life?.machine.get('service', effect.register)
    assert(
      record === undefined ||
        record.maxIdleTimeMillis === this.#world.records.valueAt(effect.register, entry.index),
      `I14: ${effect.register} is ${record?.maxIdleTimeMillis} on ${controller.id} at ${entry.index}, as if a write had taken effect twice`,
    )
  }

  /**
   * I14, once the cluster is quiet: every acknowledged operation took effect exactly once, no
   * refused one did, and none took effect twice.
   */
  assertKept(controller: Controller): void {
    const { machine } = controller.life ?? {}
    assert(machine !== undefined, 'it runs')
    for (const [number, { fate }] of this.#operations) {
      const at = this.#effects.get(number)
      assert(
        fate !== 'done' || at !== undefined,
        `I14: acknowledged operation ${number} is missing`,
      )
      assert(fate !== 'refused' || at === undefined, `I14: refused operation ${number} took effect`)
    }
    const seen = new Set<number>()
    for (const number of this.#operations.keys()) {
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
        if (machine.get('service', `op${number}-${attempt}`) === undefined) continue
        assert(!seen.has(number), `I14: operation ${number} took effect twice`)
        seen.add(number)
      }
    }
  }

  #onFirstApplied(entry: Entry, applied: AppliedEntry, outcome: string): void {
    this.#outcomes.set(entry.index, outcome)
    const effect = entry.type === 'command' ? effectOf(entry) : null
    this.#entries.set(entry.index, effect)
    if (effect === null || applied.outcome?.ok !== true) return
    if (this.#effects.has(effect.number)) {
      this.#world.tally.note('retry answered from memory')
      return
    }
    this.#effects.set(effect.number, entry.index)
    const { records } = this.#world
    if (effect.register !== null) records.written(entry.index, effect.register, effect.number)
    else if (effect.service !== null) records.created(entry.index, 'services', effect.service)
  }

  /**
   * Writes once through each controller, without a request ID: after a reset of log time, the
   * cluster refuses all new IDs for five minutes.
   * @returns the controllers that have answered, updated as answers arrive.
   */
  probe(controllers: readonly Controller[]): ReadonlySet<Controller> {
    const answered = new Set<Controller>()
    const ask = async (controller: Controller): Promise<void> => {
      while (!answered.has(controller) && controller.isRunning && this.#world.isServing) {
        const before = this.acknowledged
        this.#open += 1
        await this.#write(controller, { attemptsMax: 1, hasId: false })
        this.#open -= 1
        if (this.acknowledged > before) answered.add(controller)
        else await this.#world.asker.pause(20)
      }
    }
    for (const controller of controllers) void ask(controller)
    return answered
  }

  async #serve(): Promise<void> {
    const { chance, load } = this.#world
    for (;;) {
      await this.#world.asker.pause(chance.integer(1, load.thinkMsMax))
      if (!this.#world.isServing) continue
      const controller = this.#pick()
      if (controller === null) continue
      this.#open += 1
      try {
        if (chance.next() < load.readShare) await this.#read(controller)
        else if (!this.#world.isAskedToWriteLess) await this.#write(controller)
      } finally {
        this.#open -= 1
      }
    }
  }

  #pick(): Controller | null {
    const running = this.#world.running()
    return running[this.#world.chance.integer(0, running.length - 1)] ?? null
  }

  async #write(
    controller: Controller,
    { attemptsMax = ATTEMPTS_MAX, hasId = true } = {},
  ): Promise<void> {
    const { chance, load, loop } = this.#world
    const operation: Operation = {
      number: this.#nextNumber,
      begunMs: loop.nowMs,
      completedBefore: this.#completedIndex,
      fate: 'open',
    }
    this.#nextNumber += 1
    this.#operations.set(operation.number, operation)
    const register = chance.next() < 0.6 ? REGISTERS[chance.integer(0, 2)] : undefined
    const padding = 'x'.repeat(chance.integer(0, load.bodyBytesMax))
    const isIdentified = hasId && (register === undefined || chance.next() < 0.7)
    const idMs = controller.life?.machine.logTimeMs ?? 0
    let asked: Controller | null = controller
    for (let attempt = 0; asked !== null && attempt < attemptsMax; attempt += 1) {
      const input = inputOf(operation.number, attempt, { register, padding, isIdentified, idMs })
      const fate = await this.#propose(asked, operation, input)
      // This attempt was refused, but the outcome of an earlier attempt is still unknown.
      if (fate === 'refused' && operation.fate === 'unknown') break
      operation.fate = fate
      if (fate !== 'unknown') break
      this.#world.tally.note('write of unknown fate')
      if (attempt + 1 >= attemptsMax || !isIdentified) break
      if (chance.next() >= load.retryShare) break
      await this.#world.asker.pause(chance.integer(10, 1_500))
      asked = this.#pick()
    }
  }

  async #propose(
    controller: Controller,
    operation: Operation,
    input: ProposalInput,
  ): Promise<Fate> {
    try {
      const answer = await this.#world.asker.ask(
        controller,
        async ({ clusterNode }) => await clusterNode.propose(input),
      )
      if (answer === 'over') return 'unknown'
      const { index, outcome } = answer
      if (!outcome.ok) return outcome.code === 'REQUEST_ID_EXPIRED' ? 'unknown' : 'refused'
      assert(
        JSON.stringify(outcome) === this.#outcomes.get(index),
        `I14: operation ${operation.number} was answered with another outcome than that of ${index}`,
      )
      assert(
        index > operation.completedBefore,
        `I14: operation ${operation.number} is at ${index}, but ${operation.completedBefore} was complete before it began`,
      )
      this.#completedIndex = Math.max(this.#completedIndex, index)
      this.acknowledged += 1
      this.#world.tally.note('write acknowledged')
      return 'done'
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'SERVER_TOO_MANY_REQUESTS') this.#world.tally.note('window full')
      return error.code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'refused'
    }
  }

  /** I15: a read sees all writes that completed anywhere before it began. */
  async #read(controller: Controller): Promise<void> {
    const completed = this.#completedIndex
    const register = REGISTERS[this.#world.chance.integer(0, 2)] ?? ''
    try {
      const answer = await this.#world.asker.ask(controller, async ({ clusterNode, machine }) => {
        const index = await clusterNode.readIndex()
        if (!(await machine.waitForApplied(index, 5_000))) return null
        return {
          index,
          applied: machine.progress().applied,
          value: machine.get('service', register),
        }
      })
      if (answer === 'over' || answer === null) return
      assert(
        answer.index >= completed,
        `I15: ${controller.id} reads at ${answer.index}, but ${completed} was complete before`,
      )
      const expected = this.#world.records.valueAt(register, answer.applied)
      assert(
        answer.value?.maxIdleTimeMillis === expected,
        `I15: ${register} reads ${answer.value?.maxIdleTimeMillis} at ${answer.applied}, where it is ${expected}`,
      )
      this.#world.tally.note('linearizable read')
    } catch (error) {
      if (!(error instanceof Problem)) throw error
    }
  }
}

const ATTEMPTS_MAX = 4

function inputOf(
  number: number,
  attempt: number,
  what: {
    readonly register: string | undefined
    readonly padding: string
    readonly isIdentified: boolean
    /** Log time of the first attempt. */
    readonly idMs: number
  },
): ProposalInput {
  const { register, padding, isIdentified, idMs } = what
  const attributes = padding === '' ? [] : [padding]
  const name = `op${number}-${attempt}`
  const content =
    register === undefined
      ? {
          kind: CommandKind.ENTITY_CREATE,
          // Each attempt would create another service; only the request ID prevents that.
          payload: writeOf(name, { name, encryptionRequired: true, roleAttributes: attributes }),
        }
      : {
          kind: CommandKind.ENTITY_PATCH,
          payload: writeOf(register, { maxIdleTimeMillis: number, roleAttributes: attributes }),
        }
  const request = {
    caller: 'i',
    id: requestIdOf(number, idMs),
    bodyHash: utf8.encode(`hash ${number}`),
  }
  return { ...content, actor: anySystem, ...(isIdentified ? { request } : {}) }
}

/** UUIDv7. */
function requestIdOf(number: number, nowMs: number): Uint8Array {
  const id = new Uint8Array(16)
  const view = new DataView(id.buffer)
  view.setUint32(0, Math.floor(nowMs / 65_536))
  view.setUint16(4, nowMs % 65_536)
  view.setUint16(6, 0x7000)
  view.setUint16(8, 0x8000)
  view.setUint32(12, number)
  return id
}

function effectOf(entry: Entry): Effect | null {
  const command = fromBinary(CommandSchema, entry.data)
  const isWrite =
    command.kind === CommandKind.ENTITY_PATCH || command.kind === CommandKind.ENTITY_CREATE
  if (command.origin === undefined || !isWrite) return null
  const write = fromBinary(EntityWriteSchema, command.payload)
  const fields = JSON.parse(text.decode(write.json)) as { readonly maxIdleTimeMillis?: number }
  const number = /^op(\d+)-/.exec(write.id)?.[1]
  if (command.kind === CommandKind.ENTITY_CREATE && number === undefined) return null
  if (command.kind === CommandKind.ENTITY_PATCH) {
    return { number: fields.maxIdleTimeMillis ?? 0, register: write.id, service: null }
  }
  return { number: Number(number), register: null, service: write.id }
}
