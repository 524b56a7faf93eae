import { hash } from 'node:crypto'
import { type Entity, isRecordInKindScope } from '../../entities/define-entity.ts'
import { type LogTimeReset, logTimeResetRecordId } from '../../entities/kinds/log-time-reset.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import { entities, entitiesByName, findEntity } from '../../entities/registry.ts'
import { assert, AssertionError } from '../../lib/assert.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import { toHex } from '../../lib/text/to-hex.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { Position } from '../../raft/types.ts'
import { historyKinds } from '../../entities/history-kinds.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import { AuditLog } from './audit-log.ts'
import type { AuditRecord } from '../../ports/audit.ts'
import {
  ProposerDeduplication,
  type RequestDeduplicationResult,
  RequestDeduplication,
  type StoredOrigin,
  type StoredRequest,
} from './deduplication.ts'
import { SetDigest, digestLanes } from './digest.ts'
import { RecordChanges } from './record-changes.ts'
import type { NormalizedRecord, RecordValues } from './record-blocks.ts'
import { isStagedKey, StagedRestore } from './staged-restore.ts'
import { recordKey, type Records, createViewRecords, type TableRow, Table } from './table.ts'

/** Thrown when a layer over a state receives more writes than its limit. */
export class TooManyWritesError extends Error {
  constructor() {
    super('too many records would change')
  }
}

/** Kinds that affect the validity of a session, in addition to the session and its identity. */
export const sessionValidityKinds: readonly KindName[] = [
  'authPolicy',
  'authenticator',
  'ca',
  'externalJwtSigner',
  'mfa',
]

function originKey(storeId: string): string {
  return `o/${storeId}`
}
const CLUSTER_KEY = 'm/cluster'

/**
 * A structure derived from the records and kept outside of the state, such as the access index.
 */
export interface DerivedIndex {
  /**
   * Called after each write, except in `wholesale`.
   * @param before the previous record; undefined: the record was created.
   */
  note(kind: KindName, id: string, before: EntityRecord | undefined): void
  /** Rebuilds the structure from all current records; earlier changes are discarded. */
  rebuild(): void
}

/**
 * Everything that the state machine reads and writes when it applies entries, in memory. Each
 * change is collected as a store record (key and value, null for a deletion) until `takeDirty`
 * returns it. The store and the digests contain the same values.
 */
export class State {
  /** Tables by kind; kinds that are views of the same table share it. */
  readonly tables: ReadonlyMap<KindName, Table>
  /**
   * Records by kind, with the kind's field names. They include records outside of the kind's scope.
   */
  readonly records: ReadonlyMap<KindName, Records>
  readonly #standing: readonly Table[]
  readonly origins = new ProposerDeduplication()
  readonly requests: RequestDeduplication
  /** Indexes that are notified of each write of a record; for example the access index. */
  readonly #followers: {
    readonly of: DerivedIndex
    readonly kinds: ReadonlySet<KindName> | null
  }[] = []
  readonly audit: AuditLog
  /** Records of a restore in progress; they do not replace the current records yet. */
  readonly staged: StagedRestore
  /**
   * Changes for subscribers outside of the apply step. (The access index records changes
   * separately.)
   */
  readonly changes = new RecordChanges()
  /** Changes by the entry that is being applied, for its audit record. */
  readonly #history = new RecordChanges(historyKinds)
  position: Position = { term: 0, index: 0 }
  /** Log time at `position`, UTC ms. */
  logTimeMs = 0
  /** Feature level of the cluster at `position`; never decreases. */
  featureLevel = 1
  /** Encoded membership.v1.Configuration that applies at `position`. */
  configuration: Uint8Array = new Uint8Array()
  #clusterId = ''
  readonly #entitiesDigest = new SetDigest()
  /** Digest over the data that the state digest covers and the entities digest does not. */
  readonly #otherDigest = new SetDigest()
  #dirty = new Map<string, string | null>()
  #dirtyCharacters = 0
  /**
   * Rows as they were before each change in the current transaction, in the order of the changes;
   * null outside of a transaction.
   */
  #undo:
    | { readonly table: Table; readonly id: string; readonly row: TableRow | undefined }[]
    | null = null
  #isWholesale = false
  /** Number of writes that are still allowed. */
  #writesLeft = Infinity

  /**
   * A layer over this state that receives further writes; this state stays unchanged. The layer is
   * valid until this state changes. It supports only reads and writes of records, and no derived
   * indexes.
   * @param writesMax after this many writes, `put` and `remove` throw {@link TooManyWritesError}.
   */
  layer(writesMax: number): State {
    return this.asLayer(new State(this), writesMax)
  }

  /** Copies position, log time, feature level, configuration and cluster id into a layer. */
  protected asLayer<S extends State>(made: S, writesMax: number): S {
    made.position = this.position
    made.logTimeMs = this.logTimeMs
    made.featureLevel = this.featureLevel
    made.configuration = this.configuration
    made.#clusterId = this.#clusterId
    made.#writesLeft = writesMax
    return made
  }

  constructor(below: State | null = null) {
    const own = new Map(
      entities
        .filter(({ name, table }) => name === table)
        .map((entity) => [entity.name, new Table(entity, below?.table(entity.name) ?? null)]),
    )
    this.tables = new Map(
      entities.map(({ name, table }) => [name, own.get(table) ?? new Table(findEntity(table))]),
    )
    this.records = new Map(
      entities.map((entity) => [entity.name, createViewRecords(entity, this.table(entity.name))]),
    )
    this.#standing = sessionValidityKinds.map((kind) => this.table(kind))
    this.requests = new RequestDeduplication(this.#otherDigest)
    this.audit = new AuditLog(this.#otherDigest)
    this.staged = new StagedRestore(this.#otherDigest, this, (key, value) => this.#note(key, value))
  }

  /**
   * Notifies the index of each write.
   * @param kinds kinds of tables whose writes the index follows; null: all.
   */
  follow(of: DerivedIndex, kinds: ReadonlySet<KindName> | null = null): void {
    this.#followers.push({ of, kinds })
  }

  get clusterId(): string {
    return this.#clusterId
  }

  set clusterId(id: string) {
    this.#clusterId = id
    this.#note(CLUSTER_KEY, JSON.stringify(id))
  }

  table<K extends KindName>(kind: K): Table<RecordOf<K>> {
    const table = this.tables.get(kind)
    if (table === undefined) throw new AssertionError(`there is a table of ${kind}`)
    return table as Table<RecordOf<K>>
  }

  /** Version that changes with each write to a kind in `sessionValidityKinds`. */
  get standingVersion(): number {
    let sum = 0
    for (const { version } of this.#standing) sum += version
    return sum
  }

  /**
   * The record; also undefined if the record is in the table but outside the scope of the kind.
   */
  get<K extends KindName>(kind: K, id: string): RecordOf<K> | undefined {
    // Fast path: kinds without a scope skip the scope check, because a request reads more than
    // fifty records.
    const record = this.tables.get(kind)?.rows.get(id)?.record
    const entity = entitiesByName.get(kind)
    if (record === undefined || entity === undefined) return undefined
    return entity.scope === null || isRecordInKindScope(entity, record)
      ? (record as RecordOf<K>)
      : undefined
  }

  /**
   * The record in the table of a kind, whether or not it is in the scope of the kind. References
   * between records refer to the whole table. If they were resolved through a scope, a record
   * outside of it would seem to be missing, and would stay when it must be removed.
   */
  inTable<K extends KindName>(kind: K, id: string): RecordOf<K> | undefined {
    return this.table(kind).get(id)
  }

  /**
   * Writes a record with exactly the fields of its table: fields that `values` lacks get their zero
   * value. `values` must include the base fields.
   */
  put(kind: KindName, values: RecordValues): void {
    this.putShaped(this.shaped(kind, values))
  }

  /** Returns a record as `put` would write it. */
  shaped(kind: KindName, values: RecordValues): NormalizedRecord {
    const table = this.table(kind)
    const { name } = table.entity
    const key = recordKey(name, values.id)
    const record = table.shape(values, this.featureLevel)
    const value = table.stored(record)
    return { kind: name, record, value, lanes: digestLanes(key, value) }
  }

  /** Writes a record that `shaped` returned at the same feature level. */
  putShaped({ kind, record, value, lanes }: NormalizedRecord): void {
    this.#write(this.table(kind), record.id, { record, lanes }, value)
  }

  remove(kind: KindName, id: string): void {
    this.#write(this.table(kind), id, undefined, null)
  }

  /**
   * Runs a part of an entry. If its outcome is a refusal, undoes its writes. Calls must not be
   * nested.
   */
  transact(run: () => Outcome): Outcome {
    assert(this.#undo === null, 'a transaction holds no other one')
    this.#undo = []
    const outcome = run()
    const undo = this.#undo
    this.#undo = null
    if (outcome.ok) return outcome
    for (const { table, id, row } of undo.reverse()) {
      this.#write(table, id, row, row === undefined ? null : table.stored(row.record))
    }
    return outcome
  }

  /**
   * Runs a change to any number of records. Afterwards, the derived indexes are rebuilt completely,
   * because notifying them of each record would cost a third more.
   */
  wholesale(run: () => void): void {
    this.#isWholesale = true
    run()
    this.#isWholesale = false
    for (const { of } of this.#followers) of.rebuild()
    this.changes.noteReplaced()
  }

  /**
   * Writes or removes a row, and updates everything that is derived from it.
   * @param value stored text; null to remove the record (`row` must then be undefined).
   */
  #write(table: Table, id: string, row: TableRow | undefined, value: string | null): void {
    this.#writesLeft -= 1
    // @guard preview-tells-or-costs--writes
    if (this.#writesLeft < 0) throw new TooManyWritesError()
    const { name, digest: digestName } = table.entity
    const key = recordKey(name, id)
    const before = table.change(id, row)
    this.#note(key, value)
    const digest = this.#digestOf(digestName)
    if (before !== undefined) digest.remove(before.lanes)
    if (row !== undefined) digest.add(row.lanes)
    if (this.#isWholesale) return
    this.#undo?.push({ table, id, row: before })
    for (const { of, kinds } of this.#followers) {
      if (kinds === null || kinds.has(name)) of.note(name, id, before?.record)
    }
    this.changes.note(name, id, before?.record)
    this.#history.note(name, id, before?.record)
  }

  /**
   * Returns and clears the changes of the current entry to records of the kinds with a history.
   */
  takeHistory(): readonly RecordChange[] {
    return this.#history.take(this.tables)
  }

  /** The number of ms by which log time is behind the timestamps in the log. */
  get setbackMs(): number {
    return this.#lastReset()?.setbackMs ?? 0
  }

  #lastReset(): LogTimeReset | undefined {
    return this.get('logTimeReset', logTimeResetRecordId)
  }

  judgeRequest(caller: string, id: Uint8Array, bodyHash: string): RequestDeduplicationResult {
    const floorMs = this.#lastReset()?.requestFloorMs ?? 0
    const { logTimeMs, featureLevel: level } = this
    return this.requests.judge(caller, id, bodyHash, { logTimeMs, floorMs, level })
  }

  rememberRequest(caller: string, id: Uint8Array, request: StoredRequest): void {
    const { key, value } = this.requests.remember(caller, id, request)
    this.#note(key, value)
  }

  remember(record: AuditRecord): void {
    this.#dirtyCharacters += this.audit.add(record)
  }

  /** Drops data that is too old by log time. Called before each entry. */
  forget(): void {
    // Changes of earlier entries that no audit record used are discarded.
    if (!this.#history.isEmpty) this.#history.clear()
    this.#forgetRequests(this.logTimeMs)
    this.#dirtyCharacters += this.audit.forget(this.logTimeMs, this.featureLevel >= 2)
    // @guard restore-expires
    this.staged.forget(this.logTimeMs)
  }

  /**
   * Drops all stored requests, because after a reset of log time their order is not that of log
   * time.
   */
  forgetRequests(): void {
    this.#forgetRequests(Infinity)
  }

  #forgetRequests(logTimeMs: number): void {
    this.requests.forget(logTimeMs, (key) => {
      this.#note(key, null)
    })
  }

  #note(key: string, value: string | null): void {
    this.#dirty.set(key, value)
    this.#dirtyCharacters += key.length + (value?.length ?? 0)
  }

  /** Estimate of the characters that `takeDirty` would return. */
  get dirtyCharacters(): number {
    return this.#dirtyCharacters
  }

  /**
   * Returns and clears the changes since the last call; they must be written as one batch together
   * with the position.
   */
  takeDirty(): { readonly key: string; readonly value: string | null }[] {
    for (const storeId of this.origins.takeChanged()) {
      const stored = this.origins.stored(storeId)
      this.#note(originKey(storeId), stored === null ? null : JSON.stringify(stored))
    }
    for (const [key, value] of this.audit.takeChanged()) this.#note(key, value)
    const records = Array.from(this.#dirty, ([key, value]) => ({ key, value }))
    this.#dirty = new Map()
    this.#dirtyCharacters = 0
    return records
  }

  /**
   * The keys and values with which the store saves the records of all kinds and the cluster id, by
   * ascending bytes of the key. Each one is encoded when it is read.
   */
  *storedRecords(): Generator<{ readonly key: string; readonly value: string }> {
    for (const kind of [...this.tables.keys()].sort()) {
      const table = this.table(kind)
      if (table.entity.name !== kind) continue
      for (const id of table.ids) {
        const record = table.get(id)
        assert(record !== undefined, 'each id in a table belongs to a record')
        yield { key: recordKey(kind, id), value: table.stored(record) }
      }
    }
    yield { key: CLUSTER_KEY, value: JSON.stringify(this.#clusterId) }
  }

  /**
   * Loads one record from the store; call `loaded` after the last record. The feature level must be
   * loaded first.
   * @throws on a malformed record.
   */
  load(key: string, value: string): void {
    const [kind, name] = key.split('/', 2)
    if (key === CLUSTER_KEY) this.#clusterId = JSON.parse(value) as string
    else if (kind === 'e' && name !== undefined) {
      const table = this.table(findEntity(name).name)
      const values = JSON.parse(value) as Readonly<Record<string, Json>>
      const record = table.shape(values, this.featureLevel)
      const lanes = digestLanes(key, value)
      table.load({ record, lanes })
      this.#digestOf(table.entity.digest).add(lanes)
    } else if (kind === 'o' && name !== undefined) {
      this.origins.load(name, JSON.parse(value) as StoredOrigin)
    } else if (kind === 'r') {
      this.requests.load(key, value)
    } else if (kind === 'a') {
      this.audit.load(key, value)
    } else if (isStagedKey(key)) {
      this.staged.load(key, value)
    } else throw new Error(`the store holds a record of no known kind: ${key.slice(0, 80)}`)
  }

  /** Must be called after all records were loaded from the store. */
  loaded(): void {
    for (const [name, table] of this.tables) {
      if (table.entity.name === name) table.loaded()
    }
    this.requests.loaded()
    for (const { of } of this.#followers) of.rebuild()
  }

  /** Recomputes the indexes of a table and the digest that includes it. */
  rebuild(kind: KindName): void {
    const table = this.table(kind)
    table.rebuild()
    const { digest } = table.entity
    this.#sumInto(this.#digestOf(digest), digest)
  }

  /** Whether a digest equals the sum of the digests of its records. Reads all these records. */
  isDigestRight(digest: Entity['digest']): boolean {
    const sum = new SetDigest()
    this.#sumInto(sum, digest)
    return sum.hex() === this.#digestOf(digest).hex()
  }

  #digestOf(digest: Entity['digest']): SetDigest {
    return digest === 'entities' ? this.#entitiesDigest : this.#otherDigest
  }

  #sumInto(sum: SetDigest, digest: Entity['digest']): void {
    sum.clear()
    for (const [name, { entity, rows }] of this.tables) {
      if (entity.name !== name || entity.digest !== digest) continue
      for (const { lanes } of rows.values()) sum.add(lanes)
    }
    if (digest !== 'state') return
    this.requests.digestInto(sum)
    for (const lanes of this.audit.lanes()) sum.add(lanes)
    for (const lanes of this.staged.lanes()) sum.add(lanes)
  }

  /** Hex digest of the records of all kinds whose descriptor has `digest: 'entities'`. */
  entitiesDigest(): string {
    return this.#entitiesDigest.hex()
  }

  /**
   * Hex digest of the whole state, including position, log time, feature level and configuration.
   */
  stateDigest(): string {
    const origins = new SetDigest()
    this.origins.digestInto(origins, originKey)
    this.audit.openInto(origins)
    const whole = [
      this.#entitiesDigest.hex(),
      this.#otherDigest.hex(),
      origins.hex(),
      this.#clusterId,
      this.position.term,
      this.position.index,
      this.logTimeMs,
      this.featureLevel,
      toHex(this.configuration),
    ]
    return hash('sha256', whole.join('\n')).slice(0, 32)
  }
}
