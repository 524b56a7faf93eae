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
  /** Addresses of the member's client API; empty if the sending controller reports none. */
  readonly apis: readonly string[]
  /**
   * SHA-256 of the public key that the member must have, in hex; null if the sending controller
   * does not report it.
   */
  readonly keySha256: string | null
}

/** Members of the cluster according to one controller. */
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
  /** Controller addresses in the configuration of the router. */
  readonly configured: readonly string[]
  /** Command that makes this router forget the known controllers, for a message. */
  readonly resetCommand?: string
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** The latest list that one controller sent. */
interface MemberList {
  readonly index: bigint
  readonly members: ReadonlyMap<string, ReportedController>
  /**
   * False for controllers of OpenZiti and of 0.2.0, which report no client APIs: such a list does
   * not count as a vote against a client API.
   */
  readonly hasApis: boolean
  readonly removed: readonly ControllerKey[]
}

/**
 * The controllers that a router trusts. It compares the lists of members that all controllers send,
 * regardless of which one leads and which index a list has, so that no single controller can remove
 * another.
 *
 * A controller that a majority has listed becomes a voter. A controller that a majority of the
 * voters does not list is removed. A controller that is not a voter is used as long as a voter
 * lists it.
 */
export class ControllerMembership {
  readonly #configured: ReadonlySet<string>
  readonly #resetCommand: string
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #startedMs: number
  #controllers: readonly KnownController[]
  #removed: readonly ControllerKey[]
  /**
   * The latest list of each connected controller. The list of a disconnected controller stays only
   * if it does not contain this controller itself.
   */
  readonly #lists = new Map<string, MemberList>()
  /** Key of each connected controller, by controller ID. */
  readonly #connected = new Map<string, string>()
  /**
   * For each controller ID, the time at which the controller's last connection ended, monotonic ms.
   */
  readonly #closedMs = new Map<string, number>()
  /** IDs of controllers that responded at a configured address. */
  readonly #metAsConfigured = new Set<string>()
  #leaderId: string | null = null

  constructor({
    controllers,
    removed,
    configured,
    resetCommand = 'flotilla router reset CONFIG',
    clock,
  }: MembershipOptions) {
    this.#controllers = controllers
    this.#removed = removed
    this.#configured = new Set(configured)
    this.#resetCommand = resetCommand
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

  /**
   * ID of the controller that last reported itself as leader; null if there is none, or if it has
   * since reported that it does not lead.
   */
  get leaderId(): string | null {
    return this.#leaderId
  }

  /**
   * The greatest log index that a majority of the voters has reported; 0 if no majority has sent a
   * list.
   */
  get index(): bigint {
    const voters = this.#voters()
    const indexes = voters.map(({ id }) => this.#lists.get(id)?.index ?? 0n)
    return indexes.sort((a, b) => (a < b ? 1 : -1))[majorityOf(voters.length) - 1] ?? 0n
  }

  /**
   * Whether the list of a voter differs from the known members, so that the router must request
   * newer lists.
   */
  get isDisputed(): boolean {
    const ids = new Set(this.#controllers.map(({ id }) => id))
    return this.#voterLists().some(
      ({ members }) => members.size !== ids.size || [...members.keys()].some((id) => !ids.has(id)),
    )
  }

  /**
   * Why a controller with this certificate must not be trusted, as a clause for a message; null if
   * it may be trusted.
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
      : `the key of controller ${id} is not the one that the other controllers have pinned; if the cluster was restored from a backup into a new cluster, or recovered after a lost quorum, stop this router and type: ${this.#resetCommand}. Otherwise treat the key of the issuing authority as stolen`
  }

  /**
   * Addresses at which the router dials a controller: first those in `addresses`, then a few that
   * only single voters list.
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
   * Makes the controller a voter if it responds at a configured address at which no other voter has
   * responded. This condition prevents an attacker who has the key of the issuing CA from creating
   * any number of voters.
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
    // The last list of a removed controller does not contain the controller itself. This list is
    // kept, because it counts as a vote for the removal.
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

  /**
   * Checks for controllers that have become absent, because no message reports this.
   * @returns whether the controllers or their addresses have changed.
   */
  onTime(): boolean {
    return this.#judge()
  }

  /**
   * Client APIs of the voters, in an order in which each controller has an address near the front.
   * The router requests no certificates from a controller that has no vote.
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

  /**
   * Evaluates the votes. A change of the voters can complete another majority, so this repeats
   * until nothing changes.
   */
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
    // The number of controllers is limited, so voters come first and are kept.
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

  /** The voters, without absent controllers that another voter does not list. */
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

  /** Majority of the voters that are not absent. It decides whether absent voters are removed. */
  #presentMajority(): number {
    return majorityOf(this.#voters().filter(({ id }) => !this.#isAbsent(id)).length)
  }

  #voterLists(): readonly MemberList[] {
    return this.#voters().flatMap(({ id }) => this.#lists.get(id) ?? [])
  }

  /**
   * Whether the router has not reached the controller for a long time. Time before the start does
   * not count, because a stopped router reaches no controller.
   */
  #isAbsent(id: string): boolean {
    if (this.#connected.has(id)) return false
    // @guard router-captured--off
    const sinceMs = this.#closedMs.get(id) ?? this.#startedMs
    return this.#clock.monotonicMs() - sinceMs >= controllerAbsentMs
  }

  /**
   * Makes the connected controllers voters if the router has not reached any voter for a long time.
   */
  #promoteAbandoned(): void {
    const isAbandoned = this.#controllers.every(
      ({ id, toldBy }) => toldBy !== null || this.#isAbsent(id),
    )
    if (!isAbandoned) return
    this.#controllers = this.#controllers.map((known) =>
      this.#connected.has(known.id) ? { ...known, toldBy: null } : known,
    )
  }

  /** @returns the controller with its new status; an empty list if it is removed. */
  #keptBy(votes: Votes, known: KnownController): KnownController[] {
    const { id, toldBy } = known
    const majority = this.#isAbsent(id) ? this.#presentMajority() : votes.majority
    // A single controller cannot remove a controller that is in the configuration.
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
    // A connected controller that responded at a configured address stays, because the cluster may
    // have moved to new controllers at the same addresses.
    const isMet = this.#metAsConfigured.has(id) && this.#connected.has(id)
    return all.length > 0 || isMet ? [{ ...known, toldBy: all }] : []
  }

  /** Controllers that voters list and that this router does not know yet. */
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

  /**
   * The key that a majority of the voters reports for this controller; otherwise the known key. For
   * a configured controller, this majority must have at least two voters, or include the controller
   * itself.
   */
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
   * Number of controllers that must list a client API before the router uses it. If the endpoints
   * file was lost, the router must not renew its certificates at an address that only the first
   * controller lists, so it waits for the configured controllers. If they do not respond,
   * and no client API is known, a majority of the controllers that sent a list is sufficient.
   */
  #apisMajority({ majority, lists }: Votes): number {
    const isEarly = this.#clock.monotonicMs() - this.#startedMs < apisByFewAfterMs
    // @guard router-captured--early
    if (isEarly) return Math.max(majority, majorityOf(this.#configured.size))
    const isNoneKnown = this.#controllers.every(({ apis = [] }) => apis.length === 0)
    // @guard router-captured--late
    return isNoneKnown ? majorityOf(lists.length) : majority
  }

  /**
   * Client APIs that a majority lists, and known client APIs, except those that the lists of a
   * majority omit.
   */
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

  /**
   * Determines the keys that the router refuses. A key is added if a majority of the voters, and at
   * least two of them, list it as removed; it is dropped if a majority lists it as a member's key.
   */
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

/**
 * The lists of the voters. A voter that has sent no list counts only for the size of the majority.
 */
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

/**
 * Addresses that a majority lists, and known addresses, except those that the lists of a majority
 * omit. If this leaves none, all known addresses.
 */
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

/**
 * Text by which two lists of controllers are compared; the order of controllers and addresses does
 * not matter.
 */
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
