import type { Clock } from '../../lib/clock.ts'
import { controllerLimits } from './limits.ts'
import { limitEndpoints, type ControllerKey, type KnownController } from './endpoints-file.ts'

const {
  addressesPerControllerMax,
  addressesReportedByOneMax,
  apisByFewAfterMs,
  controllerAbsentMs,
  controllersMax,
  controllersReportedByOneMax,
  removedControllersMax,
} = controllerLimits

export interface ReportedController {
  readonly id: string
  readonly addresses: readonly string[]
  /** Addresses of the member's client API; empty if the sender reports none. */
  readonly apis: readonly string[]
  /** Hex SHA-256 of the member's pinned key; null if the sender does not report it. */
  readonly keySha256: string | null
}

/** Members of the cluster in a controller's list. */
export interface ReportedMembers {
  readonly senderId: string
  readonly index: bigint
  readonly isLeader: boolean
  readonly controllers: readonly ReportedController[]
  readonly removed: readonly ControllerKey[]
}

interface MembershipOptions {
  /** The controllers in the endpoints file. */
  readonly controllers: readonly KnownController[]
  readonly removed: readonly ControllerKey[]
  /** Configured addresses. */
  readonly configured: readonly string[]
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** The latest list of a controller. */
interface MemberList {
  readonly index: bigint
  readonly members: ReadonlyMap<string, ReportedController>
  /**
   * False for controllers of OpenZiti and of 0.2.0, which report no client API. Such a list does
   * not count as a vote to omit an API.
   */
  readonly hasApis: boolean
  readonly removed: readonly ControllerKey[]
}

/**
 * The controllers that a router trusts. It compares the lists of all of them, no matter which one
 * leads and which index a list claims, so that no single controller can remove another.
 *
 * A controller that a majority has listed is a voter. A controller that a majority of the voters
 * does not list is removed. A controller that only some voters list is used while they list it, and
 * does not vote.
 */
export class ControllerMembership {
  readonly #configured: ReadonlySet<string>
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #startedMs: number
  #controllers: readonly KnownController[]
  #removed: readonly ControllerKey[]
  /**
   * Latest lists of connected controllers, and of disconnected controllers whose last list omits
   * themselves.
   */
  readonly #lists = new Map<string, MemberList>()
  /** ID → key of connected controllers. */
  readonly #connected = new Map<string, string>()
  /** Controller ID → monotonic ms at which the controller's last connection ended. */
  readonly #closedMs = new Map<string, number>()
  /** IDs of controllers that responded at a configured address. */
  readonly #metAsConfigured = new Set<string>()
  #leaderId: string | null = null

  constructor({ controllers, removed, configured, clock }: MembershipOptions) {
    this.#controllers = controllers
    this.#removed = removed
    this.#configured = new Set(configured)
    this.#clock = clock
    this.#startedMs = clock.monotonicMs()
  }

  get controllers(): readonly KnownController[] {
    return this.#controllers
  }

  /** Keys of controllers that a majority has reported as removed, newest last. */
  get removed(): readonly ControllerKey[] {
    return this.#removed
  }

  /** The controller that last claimed leadership; null if none has. */
  get leaderId(): string | null {
    return this.#leaderId
  }

  /**
   * The greatest index that a majority of the voters has reached; 0 while no majority is connected.
   */
  get index(): bigint {
    const voters = this.#voters()
    const indexes = voters.map(({ id }) => this.#lists.get(id)?.index ?? 0n)
    return indexes.sort((a, b) => (a < b ? 1 : -1))[majorityOf(voters.length) - 1] ?? 0n
  }

  /** Whether a voter's list differs from the known state, so that newer lists are needed. */
  get isDisputed(): boolean {
    const ids = new Set(this.#controllers.map(({ id }) => id))
    return this.#voterLists().some(
      ({ members }) => members.size !== ids.size || [...members.keys()].some((id) => !ids.has(id)),
    )
  }

  /**
   * Why a controller with this certificate must not be trusted, as one clause; null if it may be
   * trusted.
   */
  refusal(id: string, keySha256: string): string | null {
    // @guard router-captured--removed
    if (this.#removed.some((key) => isSameKey(key, { id, keySha256 }))) {
      return `controller ${id} was removed from the cluster`
    }
    const pinned = this.#known(id)?.keySha256 ?? null
    // @guard router-captured--pinned
    return pinned === null || pinned === keySha256
      ? null
      : `the key of controller ${id} is not the one that the other controllers have pinned`
  }

  /**
   * Addresses at which the router dials a controller: first `addresses`, then a few that only the
   * lists of single voters contain.
   */
  dialAddresses({ id, addresses }: KnownController): readonly string[] {
    const others = this.#voterLists().flatMap(({ members }) => {
      const reported = members.get(id)?.addresses ?? []
      // @guard router-captured--addresses
      return reported
        .filter((each) => !addresses.includes(each))
        .slice(0, addressesReportedByOneMax)
    })
    return [...new Set([...addresses, ...others])].slice(0, 2 * addressesPerControllerMax)
  }

  /**
   * Makes the controller a voter if it responds at a configured address where no other voter has
   * responded. Otherwise, an attacker with the issuing key could pose as any number of controllers.
   * @returns whether the controllers or their addresses have changed.
   */
  onConnected(id: string, address: string, keySha256: string): boolean {
    this.#connected.set(id, keySha256)
    this.#lists.delete(id)
    if (this.#configured.has(address)) this.#metAsConfigured.add(id)
    const known = this.#known(id)
    // @guard router-captured--claimed
    const isFree = !this.#controllers.some(
      (other) =>
        other.id !== id && other.toldBy === null && other.answeredAt?.includes(address) === true,
    )
    if (known === undefined) {
      // @guard router-captured--minted
      const toldBy = isFree ? null : []
      const met = { id, addresses: [address], keySha256: null, toldBy, answeredAt: [address] }
      return this.#judge([...this.#controllers, met])
    }
    const isConfigured = this.#configured.has(address)
    // @guard router-captured--second
    const met = {
      ...known,
      addresses: [address, ...known.addresses.filter((each) => each !== address)],
      toldBy: isConfigured && isFree ? null : known.toldBy,
      ...(isConfigured ? { answeredAt: [...new Set([address, ...(known.answeredAt ?? [])])] } : {}),
    }
    return this.#judge(this.#controllers.map((each) => (each === known ? met : each)))
  }

  onClosed(id: string): void {
    this.#connected.delete(id)
    this.#closedMs.set(id, this.#clock.monotonicMs())
    // A removed controller omits itself from its last list. This list is retained, because it shows
    // that the controller agrees to its removal.
    if (this.#lists.get(id)?.members.has(id) === true) this.#lists.delete(id)
  }

  /** @returns whether the controllers or their addresses have changed. */
  onMembers({ senderId, index, isLeader, controllers, removed }: ReportedMembers): boolean {
    if (isLeader) this.#leaderId = senderId
    else if (this.#leaderId === senderId) this.#leaderId = null
    if (controllers.length === 0 || this.#known(senderId) === undefined) return false
    const listed = controllers.slice(0, controllersMax)
    this.#lists.set(senderId, {
      index,
      members: new Map(listed.map((each) => [each.id, each])),
      hasApis: listed.some(({ apis }) => apis.length > 0),
      removed: removed.slice(-removedControllersMax),
    })
    return this.#judge()
  }

  /** Checks for absent controllers, which no message reports. @returns as `onMembers`. */
  onTime(): boolean {
    return this.#judge()
  }

  /**
   * Client APIs of the voters, one of each controller in turn, so that every controller is near the
   * front. The router requests no certificates from a controller that only some voters list.
   */
  get apis(): readonly string[] {
    const each = this.#controllers.map(({ toldBy, apis = [] }) => (toldBy === null ? apis : []))
    const longest = Math.max(0, ...each.map(({ length }) => length))
    return Array.from({ length: longest }, (_, at) => each.flatMap((apis) => apis[at] ?? [])).flat()
  }

  onLeader(senderId: string): void {
    this.#leaderId = senderId
  }

  #known(id: string): KnownController | undefined {
    return this.#controllers.find((each) => each.id === id)
  }

  /** A change of the voters can complete a majority, so this repeats until nothing changes. */
  #judge(controllers = this.#controllers): boolean {
    const before = textOf(this.#controllers, this.#removed)
    this.#controllers = controllers
    for (let round = 0; round < controllersMax; round += 1) {
      const text = textOf(this.#controllers, this.#removed)
      this.#step()
      if (textOf(this.#controllers, this.#removed) === text) break
    }
    const ids = new Set(this.#controllers.map(({ id }) => id))
    for (const id of Array.from(this.#lists.keys())) if (!ids.has(id)) this.#lists.delete(id)
    for (const id of Array.from(this.#closedMs.keys())) if (!ids.has(id)) this.#closedMs.delete(id)
    if (this.#leaderId !== null && !ids.has(this.#leaderId)) this.#leaderId = null
    return textOf(this.#controllers, this.#removed) !== before
  }

  #step(): void {
    this.#promoteAbandoned()
    const votes = new Votes(this.#voters().map(({ id }) => [id, this.#lists.get(id)] as const))
    this.#judgeRemoved(votes)
    const kept = this.#controllers.flatMap((known) => this.#keptBy(votes, known))
    const all = [...kept, ...this.#addedBy(votes, kept)]
    // The number of controllers is limited, so those that a majority lists come first.
    all.sort((a, b) => Number(a.toldBy !== null) - Number(b.toldBy !== null))
    const controllers = all.map((known) => ({
      ...known,
      addresses: addressesBy(votes, known),
      keySha256: this.#keyBy(votes, known),
      ...this.#apisBy(votes, known),
    }))
    this.#controllers = limitEndpoints({
      endpoints: [],
      apis: [],
      trustDomain: null,
      controllers,
      removed: [],
    }).controllers
  }

  /** The voters, except absent controllers that another voter does not list. */
  #voters(): readonly KnownController[] {
    // @guard router-captured--vote
    const voters = this.#controllers.filter(({ toldBy }) => toldBy === null)
    const lists = voters.flatMap(({ id }) =>
      this.#isAbsent(id) ? [] : (this.#lists.get(id) ?? []),
    )
    return voters.filter(
      ({ id }) => !this.#isAbsent(id) || lists.every(({ members }) => members.has(id)),
    )
  }

  /**
   * Majority of the voters that are not absent. This majority decides about the absent voters.
   */
  #presentMajority(): number {
    return majorityOf(this.#voters().filter(({ id }) => !this.#isAbsent(id)).length)
  }

  #voterLists(): readonly MemberList[] {
    return this.#voters().flatMap(({ id }) => this.#lists.get(id) ?? [])
  }

  /** Time before the start does not count, because a stopped router was unable to reach anyone. */
  #isAbsent(id: string): boolean {
    if (this.#connected.has(id)) return false
    // @guard router-captured--off
    const sinceMs = this.#closedMs.get(id) ?? this.#startedMs
    return this.#clock.monotonicMs() - sinceMs >= controllerAbsentMs
  }

  /** Makes the connected controllers voters if no voter was connected for a long time. */
  #promoteAbandoned(): void {
    const isAbandoned = this.#controllers.every(
      ({ id, toldBy }) => toldBy !== null || this.#isAbsent(id),
    )
    if (!isAbandoned) return
    this.#controllers = this.#controllers.map((known) =>
      this.#connected.has(known.id) ? { ...known, toldBy: null } : known,
    )
  }

  /** @returns the controller with its updated status; empty if it is removed. */
  #keptBy(votes: Votes, known: KnownController): KnownController[] {
    const { id, toldBy } = known
    const majority = this.#isAbsent(id) ? this.#presentMajority() : votes.majority
    // The list of a single controller does not override the configuration.
    // @guard router-captured--configuration
    const enough = this.#isConfigured(known) ? Math.max(2, majority) : majority
    // @guard router-captured--majority
    if (votes.count(({ members }) => !members.has(id)) >= enough) return []
    if (toldBy === null) return [known]
    if (votes.count(({ members }) => members.has(id)) >= votes.majority) {
      return [{ ...known, toldBy: null }]
    }
    const isStillReported = (reporter: string): boolean =>
      this.#known(reporter)?.toldBy === null && this.#lists.get(reporter)?.members.has(id) !== false
    const reporters = toldBy.filter(isStillReported)
    const others = votes.idsThat(({ members }) => members.has(id))
    const all = [...new Set([...reporters, ...others])]
    // A controller that has responded at a configured address stays: new controllers at the same
    // addresses may have replaced all known ones.
    const isMet = this.#metAsConfigured.has(id) && this.#connected.has(id)
    return all.length > 0 || isMet ? [{ ...known, toldBy: all }] : []
  }

  /** Controllers that voters list and that are not known yet. */
  #addedBy(votes: Votes, kept: readonly KnownController[]): readonly KnownController[] {
    const added = new Map<string, KnownController>()
    const keptIds = new Set(kept.map(({ id }) => id))
    for (const [reporterId, { members }] of votes.lists) {
      const isFirst = ({ toldBy }: KnownController): boolean => toldBy?.[0] === reporterId
      let reportedCount = [...kept, ...added.values()].filter(isFirst).length
      for (const { id, addresses, keySha256 } of members.values()) {
        if (keptIds.has(id) || added.has(id)) continue
        if (votes.count((list) => !list.members.has(id)) >= votes.majority) continue
        if (keySha256 !== null && this.refusal(id, keySha256) !== null) continue
        const isNamed = votes.count((list) => list.members.has(id)) >= votes.majority
        // @guard router-captured--added
        if (!isNamed && reportedCount >= controllersReportedByOneMax) continue
        if (!isNamed) reportedCount += 1
        const first = addresses.slice(
          0,
          isNamed ? addressesPerControllerMax : addressesReportedByOneMax,
        )
        const toldBy = isNamed ? null : [reporterId]
        added.set(id, { id, addresses: first, keySha256: null, toldBy })
      }
    }
    return [...added.values()]
  }

  /** The key that a majority of the voters has pinned for this controller. */
  #keyBy(votes: Votes, known: KnownController): string | null {
    const { id } = known
    const keys = new Set(votes.lists.map(([, { members }]) => members.get(id)?.keySha256 ?? null))
    for (const key of keys) {
      if (key === null) continue
      const reporters = votes.idsThat(({ members }) => members.get(id)?.keySha256 === key)
      const isOwn = reporters.includes(id) && this.#connected.get(id) === key
      const enough = this.#isConfigured(known) && !isOwn ? 2 : 1
      if (reporters.length >= Math.max(enough, votes.majority)) return key
    }
    return known.keySha256
  }

  /**
   * Number of controllers that must list a client API. A router whose endpoints file was lost must
   * not renew its certificates at an address that only the first responding controller lists, so
   * the router waits for the configured controllers. If they do not respond, a majority of the
   * responding controllers is enough.
   */
  #apisMajority({ majority, lists }: Votes): number {
    const isEarly = this.#clock.monotonicMs() - this.#startedMs < apisByFewAfterMs
    // @guard router-captured--early
    if (isEarly) return Math.max(majority, majorityOf(this.#configured.size))
    const isNoneKnown = this.#controllers.every(({ apis = [] }) => apis.length === 0)
    // @guard router-captured--late
    return isNoneKnown ? majorityOf(lists.length) : majority
  }

  /** Client APIs that a majority lists, and known ones that no majority omits. */
  #apisBy(votes: Votes, { id, apis: known = [] }: KnownController): Pick<KnownController, 'apis'> {
    const enough = this.#apisMajority(votes)
    const listed = votes.lists.flatMap(([, list]) =>
      list.hasApis ? [list.members.get(id)?.apis ?? []] : [],
    )
    const countWith = (api: string): number => listed.filter((each) => each.includes(api)).length
    // @guard router-captured--apis
    const named = listed.flat().filter((api) => countWith(api) >= enough)
    const kept = known.filter((api) => listed.length - countWith(api) < votes.majority)
    const apis = [...new Set([...named, ...kept])]
    return apis.length === 0 && known.length === 0 ? {} : { apis }
  }

  /** Finds keys to refuse. That takes a majority of at least two controllers. */
  #judgeRemoved(votes: Votes): void {
    const isMember = ({ id, keySha256 }: ControllerKey): boolean =>
      votes.count(({ members }) => members.get(id)?.keySha256 === keySha256) >= votes.majority
    const removed = this.#removed.filter((key) => !isMember(key))
    const removedKeys = votes.lists.flatMap(([, list]) => list.removed)
    for (const key of removedKeys) {
      if (removed.some((known) => isSameKey(known, key)) || isMember(key)) continue
      const count = votes.count((list) => list.removed.some((each) => isSameKey(each, key)))
      // @guard router-captured--two
      if (count >= Math.max(2, votes.majority)) removed.push(key)
    }
    this.#removed = removed.slice(-removedControllersMax)
  }

  #isConfigured({ id, addresses }: KnownController): boolean {
    return (
      this.#metAsConfigured.has(id) || addresses.some((address) => this.#configured.has(address))
    )
  }
}

/** The lists of the voters. A voter without a list only counts towards the majority. */
class Votes {
  readonly lists: readonly (readonly [id: string, list: MemberList])[]
  readonly majority: number

  constructor(voters: readonly (readonly [id: string, list: MemberList | undefined])[]) {
    this.lists = voters.flatMap(([id, list]) => (list === undefined ? [] : [[id, list] as const]))
    this.majority = majorityOf(voters.length)
  }

  count(matches: (list: MemberList) => boolean): number {
    return this.idsThat(matches).length
  }

  idsThat(matches: (list: MemberList) => boolean): readonly string[] {
    return this.lists.flatMap(([id, list]) => (matches(list) ? [id] : []))
  }
}

function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1
}

/** Addresses that a majority lists, and known ones that no majority omits. */
function addressesBy(votes: Votes, { id, addresses }: KnownController): readonly string[] {
  const listed = votes.lists.flatMap(([, { members }]) => members.get(id) ?? [])
  const countWith = (address: string): number =>
    listed.filter((each) => each.addresses.includes(address)).length
  const named = listed
    .flatMap((each) => each.addresses)
    .filter((address) => countWith(address) >= votes.majority)
  const kept = addresses.filter((address) => listed.length - countWith(address) < votes.majority)
  const found = [...new Set([...named, ...kept])].slice(0, addressesPerControllerMax)
  return found.length === 0 ? addresses : found
}

function isSameKey(a: ControllerKey, b: ControllerKey): boolean {
  return a.id === b.id && a.keySha256 === b.keySha256
}

/** Canonical string for comparison; the order of members and addresses is irrelevant. */
function textOf(
  controllers: readonly KnownController[],
  removed: readonly ControllerKey[],
): string {
  const each = controllers.map(
    ({ id, addresses, keySha256, toldBy, answeredAt = [], apis = [] }) => {
      const reporters = toldBy === null ? '' : `by ${toldBy.toSorted().join(',')}`
      const answered = answeredAt.toSorted().join(',')
      const all = [...addresses.toSorted(), ...apis.toSorted()]
      return [id, keySha256 ?? '', reporters, answered, ...all].join(' ')
    },
  )
  const keys = removed.map(({ id, keySha256 }) => `removed ${id} ${keySha256}`)
  return [...each, ...keys].toSorted().join('\n')
}
