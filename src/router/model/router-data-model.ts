import { EventEmitter } from 'node:events'
import { isDeepStrictEqual } from 'node:util'

import {
  type DataState,
  DataStateSchema,
  ModelChangeSetSchema,
  type ModelEvent,
  ValidateModelSchema,
} from '../../../proto/gen/router_pb.ts'
import { decodeIncrementally } from '../../channel/wire-scan.ts'
import { ModelContents, type ModelLimits } from './model-contents.ts'
import type { ModelComparison, ModelDifference } from '../../channel/messages/model.ts'

/** Number of events that are applied before the event loop does other work. */
const STEP_EVENTS = 500
const DIFFERENCES_MAX = 1000
/**
 * Maximum number of changed record IDs in one report; with more, the report says that any record
 * may have changed.
 */
const CHANGED_IDS_MAX = 10_000

/** The result of a change set. */
type ChangeOutcome = 'applied' | 'old' | 'not following' | 'too large'

/**
 * The router's copy of the network's data model in memory: identities, services and policies, by
 * which the router decides about access. It processes large messages in steps.
 */
export class RouterDataModel {
  readonly #limits: ModelLimits
  readonly #changes = new EventEmitter()
  #contents = new ModelContents()
  #index = 0n
  #timelineId = ''
  #isFilled = false
  #isChangeDue = false
  /** IDs of changed records for the next report; null: any record may have changed. */
  #changedIds: Set<string> | null = new Set()

  constructor(limits: ModelLimits) {
    this.#limits = limits
    this.#changes.setMaxListeners(0)
  }

  /**
   * The current records. Use the returned object only within the current turn of the event loop.
   */
  get contents(): ModelContents {
    return this.#contents
  }

  get index(): bigint {
    return this.#index
  }

  get timelineId(): string {
    return this.#timelineId
  }

  /**
   * True after a controller has sent the full model, until `clear` discards it; without the model,
   * the router cannot decide about access.
   */
  get isFilled(): boolean {
    return this.#isFilled
  }

  /**
   * Registers a listener.
   * @param listener called at most once in each turn of the event loop, with the IDs of changed
   * identities and revocations; null: any of them, or the controllers' keys, may have changed.
   * @returns a function that removes the listener.
   */
  onChanged(listener: (changedIds: ReadonlySet<string> | null) => void): () => void {
    this.#changes.on('changed', listener)
    return () => this.#changes.off('changed', listener)
  }

  /** Whether an enabled identity may use a service; does not evaluate posture checks. */
  mayUse(identityId: string, serviceId: string, type: 'Dial' | 'Bind'): boolean {
    const identity = this.#contents.identities.get(identityId)
    if (identity === undefined || identity.disabled) return false
    return this.#contents.policiesBetween(identityId, serviceId, type).length > 0
  }

  /** IDs of the existing services that an enabled identity may use. */
  servicesOf(identityId: string, type: 'Dial' | 'Bind'): ReadonlySet<string> {
    const { identities, services } = this.#contents
    const found = new Set<string>()
    // @guard circuits-of-a-tunnel--disabled
    if (identities.get(identityId)?.disabled !== false) return found
    for (const policy of this.#contents.policiesOf(identityId, type)) {
      for (const id of policy.services) if (services.get(id) !== undefined) found.add(id)
    }
    return found
  }

  /**
   * Replaces the whole model in the last step of the iterator.
   * @returns null if the new model was applied; otherwise why it is too large. A model that is too
   * large is discarded, and the router then has no model.
   * @throws when the bytes cannot be decoded.
   */
  *replace(body: Uint8Array): Generator<void, string | null> {
    const state = yield* decodeIncrementally(DataStateSchema, body)
    const { contents, excess } = yield* this.#contentsOf(state)
    // @guard data-model-of-another--sent
    if (excess !== null) {
      this.clear()
      return excess
    }
    this.#contents = contents
    this.#index = state.endIndex
    this.#timelineId = state.timelineId
    this.#isFilled = true
    this.#changed(null)
    return null
  }

  /** Applies a set of changes. @throws when the bytes are not a valid message. */
  *change(body: Uint8Array, isOfSubscription: boolean): Generator<void, ChangeOutcome> {
    const set = yield* decodeIncrementally(ModelChangeSetSchema, body)
    if (!set.isSynthetic) {
      // @guard data-model-of-another--follows
      if (!isOfSubscription || !this.#isFilled) return 'old'
      // @guard data-model-of-another--history
      if (set.timelineId !== '' && set.timelineId !== this.#timelineId) return 'not following'
      // @guard data-model-of-another--old
      if (set.index <= this.#index) return 'old'
      // @guard data-model-of-another--missing
      if (set.previousIndex > 0n && set.previousIndex !== this.#index) return 'not following'
    }
    for (const event of set.changes) this.#contents.apply(event)
    if (!set.isSynthetic) this.#index = set.index
    // @guard data-model-of-another--grown
    if (this.#contents.excess(this.#limits) !== null) {
      this.clear()
      return 'too large'
    }
    this.#changed(set.changes)
    return 'applied'
  }

  /**
   * Compares a controller's model with the router's model. @throws when the bytes are not a valid
   * message.
   */
  *compare(body: Uint8Array): Generator<void, ModelComparison> {
    const { state } = yield* decodeIncrementally(ValidateModelSchema, body)
    const theirs =
      state === undefined ? new ModelContents() : (yield* this.#contentsOf(state)).contents
    return compareModels(this.#contents, theirs, DIFFERENCES_MAX)
  }

  /** Discards the model. The router then permits no access until it receives a full model. */
  clear(): void {
    this.#contents = new ModelContents()
    this.#index = 0n
    this.#timelineId = ''
    this.#isFilled = false
    this.#changed(null)
  }

  *#contentsOf({
    events,
  }: DataState): Generator<void, { contents: ModelContents; excess: string | null }> {
    const contents = new ModelContents()
    for (const [at, event] of events.entries()) {
      contents.apply(event)
      if (at % STEP_EVENTS !== STEP_EVENTS - 1) continue
      const excess = contents.excess(this.#limits)
      if (excess !== null) return { contents, excess }
      yield
    }
    return { contents, excess: contents.excess(this.#limits) }
  }

  /** @param events null if the whole model was replaced. */
  #changed(events: readonly ModelEvent[] | null): void {
    if (events === null) this.#changedIds = null
    for (const { model } of events ?? []) {
      if (model.case === 'publicKey') this.#changedIds = null
      else if (model.case === 'identity' || model.case === 'revocation') {
        this.#changedIds?.add(model.value.id)
      }
    }
    if ((this.#changedIds?.size ?? 0) > CHANGED_IDS_MAX) this.#changedIds = null
    if (this.#isChangeDue) return
    this.#isChangeDue = true
    setImmediate(() => {
      const changedIds = this.#changedIds
      this.#isChangeDue = false
      this.#changedIds = new Set()
      this.#changes.emit('changed', changedIds)
    })
  }
}

type Records = ReadonlyMap<string, unknown>

/** Differences between the models of the router and of a controller, up to a maximum number. */
export function compareModels(
  own: ModelContents,
  theirs: ModelContents,
  differencesMax: number,
): ModelComparison {
  const differences: ModelDifference[] = []
  const [ownKinds, theirKinds] = [kindsOf(own), kindsOf(theirs)]
  for (const [kind, records] of Object.entries(theirKinds)) {
    for (const found of compareKind(kind, ownKinds[kind] ?? new Map(), records)) {
      if (differences.length >= differencesMax) break
      differences.push(found)
    }
  }
  return { own: countsOf(ownKinds), theirs: countsOf(theirKinds), differences }
}

function* compareKind(kind: string, own: Records, theirs: Records): Iterable<ModelDifference> {
  for (const [id, record] of theirs) {
    if (!own.has(id)) yield { kind, id, difference: 'removed', detail: 'the router lacks it' }
    else if (!isDeepStrictEqual(own.get(id), record)) {
      yield { kind, id, difference: 'modified', detail: 'the router has another one' }
    }
  }
  for (const id of own.keys()) {
    if (!theirs.has(id)) yield { kind, id, difference: 'added', detail: 'only the router has it' }
  }
}

/** The records by kind, with the names that controllers use for the kinds. */
function kindsOf(contents: ModelContents): Readonly<Record<string, Records>> {
  const byId = (table: { values(): Iterable<{ readonly id: string }> }): Records =>
    new Map(Array.from(table.values(), (record) => [record.id, record]))
  return {
    configType: byId(contents.configTypes),
    config: byId(contents.configs),
    identity: byId(contents.identities),
    service: byId(contents.services),
    router: byId(contents.routers),
    'posture-check': byId(contents.postureChecks),
    'service-policy': contents.policies,
    'public-keys': contents.publicKeys,
    revocations: contents.revocations,
  }
}

function countsOf(kinds: Readonly<Record<string, Records>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(kinds).map(([kind, { size }]) => [kind, size]))
}
