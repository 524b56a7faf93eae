import type { SessionUses } from './session-uses.ts'
import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { FieldName, KindName, RecordOf } from '../entities/kind-records.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import type { Index } from '../raft/types.ts'
import { type EvaluatedPosture, unknownPosture } from './evaluated-posture.ts'

/** Names of kinds, and types of their records, for code that must not import descriptors. */
export type { KindName, RecordOf }

/** Parameters of a list request, parsed to their types. */
export interface ListQuery {
  readonly filter?: string
  /** The order, in the syntax of a `sort by` clause. */
  readonly sort?: string
  /** Default 10, at most 500; -1: all. */
  readonly limit?: number
  readonly offset?: number
  /** Role filter; each item is `#attribute` or `@id`. */
  readonly roleFilter?: readonly string[]
  readonly roleSemantic?: string
  /** Type of the policies that an access list considers: `dial`, `bind`, or both when absent. */
  readonly policyType?: string
  /** True if the list must omit everything that would let a reader act as an administrator. */
  readonly isForNonAdmin?: boolean
}

/** One page of a list. */
export interface ListResult<R extends EntityRecord = EntityRecord> {
  readonly records: readonly R[]
  /** The limit that the list used after clamping; -1 for no limit. */
  readonly limit: number
  readonly offset: number
  /** Number of all records that match, on any page. */
  readonly totalCount: number
}

/**
 * A query of the audit log. An entry matches if it satisfies all conditions that the query
 * contains.
 */
export interface HistoryQuery extends ListQuery {
  /**
   * Tables whose records the reader may see. null: the reader may see all entries, including those
   * that concern no record.
   */
  readonly tables: ReadonlySet<string> | null
  /**
   * True if the result contains only entries that write records of the kinds whose changes the
   * audit log stores.
   */
  readonly isOfRecords: boolean
  readonly kind?: KindName | undefined
  /** ID of a record, or its current name, or one of its former names. */
  readonly record?: string | undefined
  /** ID or name of the actor. */
  readonly actor?: string | undefined
  /** Name of an action; `update` also matches `patch` and `replace`. */
  readonly action?: string | undefined
  readonly sinceMs?: number | undefined
  readonly untilMs?: number | undefined
}

/**
 * A list that is computed in steps: each `next` does a bounded part of the work, and the last one
 * returns the list. The list contains the records as they are when it begins; records that
 * reference them are read at each step.
 * @throws as `StateView.list`, from any step.
 */
export type SteppedListing = Generator<void, ListResult>

/** The records from which a list is made. */
export type ListSource =
  | { readonly of: 'kind'; readonly entity: KindName }
  | { readonly of: 'subList'; readonly entity: KindName; readonly id: string; readonly key: string }
  | {
      readonly of: 'naming'
      readonly entity: KindName
      readonly field: string
      readonly value: string
    }
  | { readonly of: 'services'; readonly identityId: string }

/**
 * Types of service policies: `Dial` lets an identity use a service, `Bind` lets it host the
 * service.
 */
export type DialBind = 'Bind' | 'Dial'

/** Access that policies give an identity to a service. */
export interface IdentityServiceAccess {
  /** Permissions that policies grant, whether or not the client's posture passes. */
  readonly permissions: readonly DialBind[]
  /** Service policies that link the identity and the service, in id order. */
  readonly policies: readonly { readonly id: string; readonly type: DialBind }[]
  readonly identityRouterCount: number
  readonly serviceRouterCount: number
  /** Edge routers through which the identity may reach the service, in id order, online or not. */
  readonly commonRouters: readonly RecordOf<'edgeRouter'>[]
}

/** A set of ids that always reflects the current state. */
export interface LiveIdSet {
  has(id: string): boolean
}

/** The identities that policies let use an edge router. */
export interface RouterIdentities {
  /** The key is equal for routers that the same policies select. */
  readonly key: string
  readonly identities: LiveIdSet
}

/** A service policy and its posture checks; each access looks up the current checks. */
export interface PolicyWithPostureChecks {
  readonly id: string
  readonly name: string
  /** Returns the posture checks in id order. */
  checks(): readonly RecordOf<'postureCheck'>[]
  /** Ids of the services that the policy selects, in any order. */
  serviceIds(): Iterable<string>
}

/** A posture check that was evaluated, and its revision at that time. */
export interface EvaluatedPostureCheck {
  readonly id: string
  readonly revision: number
}

/**
 * Data of the caller's session on which the detail of a service depends, in addition to its
 * identity.
 */
export interface ServiceDetailScope {
  readonly configTypes: ShownConfigTypes
  readonly posture: EvaluatedPosture
}

/** Ids of the config types whose data a service's detail contains. */
export type ShownConfigTypes = ReadonlySet<string> | 'all'
export const noConfigTypes: ShownConfigTypes = new Set()
/** Events of a device after which a posture check requires a new MFA code. */
export interface CodePrompts {
  readonly isWoken: boolean
  readonly isUnlocked: boolean
}

/** A service whose posture checks require a new MFA code when a grace period ends. */
export interface PromptedService {
  readonly id: string
  readonly name: string
  /** Seconds after which a code expires; -1: a code does not expire. */
  readonly timeout: number
  readonly timeoutRemaining: number
}

export const noServiceDetailScope: ServiceDetailScope = {
  configTypes: noConfigTypes,
  posture: unknownPosture,
}

/** Access to records by kind and id. */
export interface RecordSource {
  get<K extends KindName>(kind: K, id: string): RecordOf<K> | undefined
}

/**
 * Records, and a counter from which readers recognize that sessions may have become valid or
 * invalid.
 */
export interface ValidityRecords extends RecordSource {
  /**
   * Increases with each write of a record, other than a session, that decides whether sessions are
   * valid.
   */
  readonly standingVersion: number
}

/**
 * The replicated state that this controller has applied, for readers. Methods that return neither a
 * promise nor a generator are synchronous and consistent within one turn of the event loop. The
 * name of a kind ('service') determines the type of its records.
 */
export interface StateView extends RecordSource {
  readonly appliedIndex: Index
  /** Log time at `appliedIndex`, UTC ms. */
  readonly logTimeMs: number
  /** Id of the cluster; '' before the command that forms the cluster is applied. */
  readonly clusterId: string
  /** The feature level at `appliedIndex`. */
  readonly featureLevel: number
  /** Number of request ids for which the outcome is stored. */
  readonly requestIds: number
  waitForApplied(index: Index, timeoutMs: number): Promise<boolean>

  /**
   * The records themselves, for several reads within one turn of the event loop. A restore replaces
   * this object, so callers must not use it in a later turn.
   */
  readonly recordsNow: ValidityRecords
  /** Finds a record by the value of a unique field. */
  find<K extends KindName>(kind: K, field: FieldName<K>, value: string): RecordOf<K> | undefined
  /**
   * Finds records by the value of an indexed field, in id order, for example the authenticators or
   * the sessions of an identity.
   */
  findAll<K extends KindName>(kind: K, field: FieldName<K>, value: string): readonly RecordOf<K>[]
  count(kind: KindName): number

  /**
   * The same as `list`, `subList`, `listNaming` or `accessibleServices`, but in steps, because a
   * caller's query may take long. Null where `subList` returns null.
   */
  listing(source: ListSource, query: ListQuery): SteppedListing | null
  /**
   * Lists in one step.
   * @throws {Problem} INVALID_FILTER, INVALID_SORT_IDENTIFIER; COULD_NOT_VALIDATE for the role
   * filter.
   */
  list<K extends KindName>(kind: K, query: ListQuery): ListResult<RecordOf<K>>
  /**
   * A sub-list that a descriptor defines in `lists`. For a missing parent, null or an empty list,
   * as the descriptor defines.
   * @throws {Problem} as `list`.
   */
  subList(kind: KindName, id: string, key: string, query: ListQuery): ListResult | null
  /** Lists records whose indexed field has that value. @throws {Problem} as `list`. */
  listNaming<K extends KindName>(
    kind: K,
    field: FieldName<K>,
    value: string,
    query: ListQuery,
  ): ListResult<RecordOf<K>>
  /**
   * The reference to a record that responses contain: {_links, entity, id, name}; null for a
   * missing record.
   */
  ref(kind: KindName, id: string): JsonObject | null
  /** Names that a filter of the kind may use. */
  filterableFields(kind: KindName): readonly string[]

  /**
   * Permissions that policies give the identity on the service; [] when none. Order: Bind, Dial.
   */
  permissions(identityId: string, serviceId: string): readonly DialBind[]
  /** The services an identity may dial or bind. @throws {Problem} as `list`. */
  accessibleServices(identityId: string, query: ListQuery): ListResult<RecordOf<'service'>>

  /** The identity's access to the service; null if one of them does not exist. */
  accessBetween(identityId: string, serviceId: string): IdentityServiceAccess | null
  /** Whether a router is connected to any controller. */
  isRouterOnline(routerId: string): boolean
  /**
   * Whether clients may be able to connect to the router; false only if it is online and has
   * reported that none can.
   */
  mayServeClients(routerId: string): boolean
  /** Whether the router is online and has reported an address at which clients reach it. */
  servesClients(routerId: string): boolean
  /** The edge routers that policies let the identity use; none if the identity does not exist. */
  routersOfIdentity(identityId: string): LiveIdSet
  /** The identities that may use the router; empty if it is not an edge router. */
  identitiesOfRouter(routerId: string): RouterIdentities
  /** The service policies of a type that select both the identity and the service, in id order. */
  policiesBetween(
    identityId: string,
    serviceId: string,
    type: DialBind,
  ): readonly PolicyWithPostureChecks[]
  /** The service policies that select the identity, in any order. */
  policiesOfIdentity(identityId: string): readonly PolicyWithPostureChecks[]
  /**
   * Log time of the last change to the services of an API session: to the list of services, to the
   * permissions on them, or to their configs or posture checks. Without such a change, the creation
   * time of the session. Null for a missing session.
   */
  lastChangeAt(apiSessionId: string): number | null

  /**
   * The detail of a record as responses show it. The detail of a service contains the permissions
   * and configs of the identity `callerId`. Without `shownFor`, this detail has no config data, and
   * no posture check in it passes.
   */
  detail(
    kind: KindName,
    record: EntityRecord,
    callerId: string,
    shownFor?: ServiceDetailScope,
  ): JsonObject
  /**
   * Returns a function that prints a record as `detail` shows it, as JSON text. Values that depend
   * on the time are those at the time of the call to `detailSerializer`.
   */
  detailSerializer(
    kind: KindName,
    callerId: string,
    shownFor?: ServiceDetailScope,
  ): (one: EntityRecord) => string

  /** Service sessions in id order: at most `max`, beginning after `afterId`. */
  serviceSessionsAfter(afterId: string, max: number): readonly RecordOf<'session'>[]

  /**
   * Log time at which access next expires, or at which the next expiry must be announced, whichever
   * comes first; null: there is none.
   */
  nextAccessEndMs(): number | null

  /**
   * API sessions for which `isOver` returns true, with the last activity in their records: at most
   * `max`, in any order.
   */
  sessionsThat(
    isOver: (session: RecordOf<'apiSession'>) => boolean,
    max: number,
  ): readonly { readonly id: string; readonly lastActivityMs: number }[]

  /**
   * From this call on, details and filters include uses of sessions that the log does not contain
   * yet.
   */
  showUses(uses: SessionUses): void

  /**
   * Lists the audit records of writes, the newest first unless the query has another order. Works
   * in slices, between which the event loop does other work.
   * @throws {Problem} as `list`.
   */
  listAudit(query: ListQuery): Promise<ListResult>

  /**
   * Lists, in steps, the stored audit records that match a query of the history; otherwise like
   * `listAudit`.
   * @throws {Problem} as `list`.
   */
  listHistory(query: HistoryQuery): Generator<void, ListResult>

  /** The audit record of the entry at a log index; undefined if it is not stored. */
  auditRecordAt(index: number): EntityRecord | undefined
}
