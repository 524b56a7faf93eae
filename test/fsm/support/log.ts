import { create, toBinary } from '@bufbuild/protobuf'
import {
  type Command,
  CommandKind,
  CommandSchema,
  EntityBatchSchema,
  EntityDeleteSchema,
  EntityWriteSchema,
  FeatureLevelRaiseSchema,
  FormSchema,
  IdentityDisableSchema,
  IdentityEnableSchema,
  ServiceConfigsSchema,
  SessionCreateSchema,
  SessionDeleteSchema,
  SessionExpireSchema,
  SessionTouchSchema,
} from '../../../proto/gen/command_pb.ts'
import { normalizeBody } from '../../../src/entities/normalize-body.ts'
import type { RequestMode } from '../../../src/entities/define-entity.ts'
import { findEntity } from '../../../src/entities/registry.ts'
import { applyLogEntry } from '../../../src/fsm/apply-log-entry.ts'
import { initialSeedRecords } from '../../../src/fsm/seed/seed.ts'
import { canonicalJson, type JsonObject } from '../../../src/lib/text/canonical-json.ts'
import type { AppliedEntry } from '../../../src/ports/replicated-state-machine.ts'
import type { Outcome } from '../../../src/ports/proposer.ts'
import type { Entry, EntryType } from '../../../src/raft/types.ts'
import { appliedLogs } from '../../support/applied-logs.ts'
import { Replay, type StateDigests } from '../../support/replayed.ts'
import { FEATURE_LEVEL } from '../../../src/ports/feature-level.ts'
import { type Actor, createSystemActor } from '../../../src/ports/actor.ts'
import { anySystem } from '../../support/commands.ts'
import { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

export const startMs = 1_700_000_000_000

type CommandInput = Partial<Pick<Command, 'origin' | 'request' | 'judgedOn' | 'level'>> & {
  readonly actor?: Actor
}

const utf8 = new TextEncoder()

/**
 * The fields of a command; members that a preparer would take from the body must already have their
 * stored form.
 */
function fieldsOf(kind: string, mode: RequestMode, body: JsonObject): JsonObject {
  const entity = findEntity(kind)
  const prepared = Object.entries(body).filter(
    ([name]) => name in entity.body && entity.fields[name]?.settable === 'proposer',
  )
  return { ...normalizeBody(entity, mode, body).fields, ...Object.fromEntries(prepared) }
}

/** Writes a log as controllers would, and passes each entry to the function that applies it. */
export class LogWriter {
  readonly entries: Entry[] = []
  timeMs = startMs
  readonly #apply: (entry: Entry) => AppliedEntry

  readonly #digests: (() => StateDigests) | null
  /** Digests after the last entry; null if the log does not determine the whole state. */
  #made: StateDigests | null = null

  /**
   * @param digests returns the digests of the state that the log has created; after the test, a
   * replay of the log must have the same digests.
   */
  constructor(applyEntry: (entry: Entry) => AppliedEntry, digests?: () => StateDigests) {
    this.#apply = applyEntry
    this.#digests = digests ?? null
    if (digests === undefined) return
    this.#made = digests()
    const replay = new Replay()
    appliedLogs.add({
      length: () => this.entries.length,
      judge: async () => {
        if (this.#made !== null) await replay.judge(this.entries, this.#made, true)
      },
      isEnded: null,
    })
  }

  append(type: EntryType, data: Uint8Array): AppliedEntry {
    const entry = { index: this.entries.length + 1, term: 1, timeMs: this.timeMs, type, data }
    this.entries.push(entry)
    const before = this.#made
    // If a test has written records to the state directly, or an entry cannot be applied, the log
    // cannot be replayed.
    this.#made = null
    const isByLog = before !== null && before.state === this.#digests?.().state
    const applied = this.#apply(entry)
    if (isByLog) this.#made = this.#digests?.() ?? null
    return applied
  }

  command(kind: number, payload: Uint8Array, input: CommandInput = {}): AppliedEntry {
    const message = create(CommandSchema, { kind, payload, level: 1, actor: anySystem, ...input })
    return this.append('command', toBinary(CommandSchema, message))
  }

  #outcome(kind: number, payload: Uint8Array, input: CommandInput = {}): Outcome {
    const { outcome } = this.command(kind, payload, input)
    if (outcome === null) throw new Error('the command was passed over')
    return outcome
  }

  form(): Outcome {
    const records = initialSeedRecords({
      adminId: 'admin',
      adminAuthenticatorId: 'admin-updb',
      adminName: 'Default Admin',
      passwordHash: '$argon2id$test',
    })
    return this.#outcome(
      CommandKind.FORM,
      toBinary(FormSchema, create(FormSchema, { clusterId: 'cluster', records })),
    )
  }

  /** The payload of a command as the API would create it; `fields` are not checked. */
  static write(entity: string, id: string, fields: JsonObject): Uint8Array {
    const json = utf8.encode(canonicalJson(fields))
    return toBinary(EntityWriteSchema, create(EntityWriteSchema, { entity, id, json }))
  }

  create(entity: string, id: string, body: JsonObject, input: CommandInput = {}): Outcome {
    const fields = fieldsOf(entity, 'create', body)
    return this.#outcome(CommandKind.ENTITY_CREATE, LogWriter.write(entity, id, fields), input)
  }

  replace(entity: string, id: string, body: JsonObject, input: CommandInput = {}): Outcome {
    const fields = fieldsOf(entity, 'replace', body)
    return this.#outcome(CommandKind.ENTITY_REPLACE, LogWriter.write(entity, id, fields), input)
  }

  patch(entity: string, id: string, body: JsonObject, input: CommandInput = {}): Outcome {
    const fields = fieldsOf(entity, 'patch', body)
    return this.#outcome(CommandKind.ENTITY_PATCH, LogWriter.write(entity, id, fields), input)
  }

  raw(kind: number, entity: string, id: string, fields: JsonObject): Outcome {
    return this.#outcome(kind, LogWriter.write(entity, id, fields))
  }

  /**
   * A command with several steps, each [kind, entity, id, fields]; its outcome has the ID of step
   * `answer`.
   */
  batch(steps: readonly (readonly [number, string, string, JsonObject])[], answer = 0): Outcome {
    const message = create(EntityBatchSchema, {
      steps: steps.map(([kind, entity, id, fields]) => ({
        kind,
        write: { entity, id, json: utf8.encode(canonicalJson(fields)) },
      })),
      answer,
    })
    return this.#outcome(CommandKind.ENTITY_BATCH, toBinary(EntityBatchSchema, message))
  }

  delete(entity: string, id: string): Outcome {
    const message = create(EntityDeleteSchema, { entity, id })
    return this.#outcome(CommandKind.ENTITY_DELETE, toBinary(EntityDeleteSchema, message))
  }

  logIn(id: string, identityId = 'admin', authenticatorId = 'admin-updb', envInfo = ''): Outcome {
    const envInfoJson = utf8.encode(envInfo)
    const init = { id, identityId, authenticatorId, ipAddress: '127.0.0.1', envInfoJson }
    return this.#outcome(
      CommandKind.SESSION_CREATE,
      toBinary(SessionCreateSchema, create(SessionCreateSchema, init)),
      { actor: createSystemActor({ name: 'test', identityId }) },
    )
  }

  disable(id: string, durationMinutes: number): Outcome {
    const message = create(IdentityDisableSchema, { id, durationMinutes: BigInt(durationMinutes) })
    return this.#outcome(CommandKind.IDENTITY_DISABLE, toBinary(IdentityDisableSchema, message))
  }

  enable(id: string): Outcome {
    const message = create(IdentityEnableSchema, { id })
    return this.#outcome(CommandKind.IDENTITY_ENABLE, toBinary(IdentityEnableSchema, message))
  }

  /** A command that assigns or removes pairs of service and config. */
  serviceConfigs(
    what: 'associate' | 'disassociate',
    identityId: string,
    pairs: readonly (readonly [string, string])[],
  ): Outcome {
    const message = create(ServiceConfigsSchema, {
      identityId,
      pairs: pairs.map(([serviceId, configId]) => ({ serviceId, configId })),
    })
    return this.#outcome(
      what === 'associate'
        ? CommandKind.SERVICE_CONFIGS_ASSOCIATE
        : CommandKind.SERVICE_CONFIGS_DISASSOCIATE,
      toBinary(ServiceConfigsSchema, message),
    )
  }

  raiseLevel(level = FEATURE_LEVEL): Outcome {
    const message = create(FeatureLevelRaiseSchema, { level })
    const payload = toBinary(FeatureLevelRaiseSchema, message)
    return this.#outcome(CommandKind.FEATURE_LEVEL_RAISE, payload)
  }

  endAccess(): AppliedEntry {
    return this.command(CommandKind.ACCESS_END, new Uint8Array(), { level: 3 })
  }

  logOut(id: string): Outcome {
    const message = create(SessionDeleteSchema, { id })
    return this.#outcome(CommandKind.SESSION_DELETE, toBinary(SessionDeleteSchema, message))
  }

  touch(id: string, atMs: number): Outcome {
    const message = create(SessionTouchSchema, { marks: [{ id, atMs: BigInt(atMs) }] })
    return this.#outcome(CommandKind.SESSION_TOUCH, toBinary(SessionTouchSchema, message))
  }

  expire(id: string, lastActivityMs: number, expiresAtMs = 0): Outcome {
    const marks = [{ id, lastActivityMs: BigInt(lastActivityMs), expiresAtMs: BigInt(expiresAtMs) }]
    return this.#outcome(
      CommandKind.SESSION_EXPIRE,
      toBinary(SessionExpireSchema, create(SessionExpireSchema, { marks })),
    )
  }
}

/** The state of a new cluster, and the log that has created it. */
export function formedState(): { readonly state: ClusterState; readonly log: LogWriter } {
  const state = new ClusterState()
  const log = new LogWriter(
    (entry) => applyLogEntry(state, entry),
    () => ({ state: state.stateDigest(), entities: state.entitiesDigest() }),
  )
  log.form()
  return { state, log }
}

export function service(name: string, roleAttributes: readonly string[] = []): JsonObject {
  return { name, encryptionRequired: true, roleAttributes }
}

export function identity(name: string, roleAttributes: readonly string[] = []): JsonObject {
  return { name, isAdmin: false, roleAttributes }
}

export function policy(
  name: string,
  identityRoles: readonly string[],
  serviceRoles: readonly string[],
  rest: JsonObject = {},
): JsonObject {
  return { name, type: 'Dial', semantic: 'AnyOf', identityRoles, serviceRoles, ...rest }
}
