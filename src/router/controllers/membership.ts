import { bounded, type KnownController } from './endpoints-file.ts'

/** Members of the cluster, as a controller tells them. */
export interface MembersTold {
  readonly senderId: string
  /** Address that the sender was dialed at. */
  readonly dialedAddress: string
  /** Grows with each change of members. */
  readonly index: bigint
  readonly isLeader: boolean
  readonly controllers: readonly KnownController[]
}

export interface MembersJudged {
  /** The members are others than before, or elsewhere. */
  readonly isChanged: boolean
  /** The leader is to be asked for the whole list, as the sender cannot take a member away. */
  readonly asksLeader: boolean
}

const nothing: MembersJudged = { isChanged: false, asksLeader: false }

/**
 * Controllers of the cluster, by what each of them tells. A leader's list takes the place of the
 * one that is known; that of another can only add to it, as it may lag behind.
 */
export class ControllerMembership {
  #controllers: readonly KnownController[]
  #index = 0n
  #leaderIndex = 0n
  /** Whether the list is a leader's, or one that added to it without lacking anything. */
  #isSettled = false
  #leaderId: string | null = null

  /** @param controllers as they were known before; whoever tells a list first is listened to. */
  constructor(controllers: readonly KnownController[]) {
    this.#controllers = controllers
  }

  get controllers(): readonly KnownController[] {
    return this.#controllers
  }

  /** Null while no leader has been heard of. */
  get leaderId(): string | null {
    return this.#leaderId
  }

  get index(): bigint {
    return this.#index
  }

  onMembers(told: MembersTold): MembersJudged {
    const { index, isLeader, senderId, controllers } = told
    if (isLeader && index >= this.#index) this.#leaderId = senderId
    if (controllers.length === 0) return { isChanged: false, asksLeader: !isLeader }
    const isNewer = this.#index === 0n || index > this.#index
    // A list that only added may still hold members that are gone: the leader's word on the same
    // change settles it.
    const isSettling = isLeader && index === this.#index && !this.#isSettled
    if (!isNewer && !isSettling) return nothing
    this.#index = index
    if (isLeader) {
      this.#isSettled = true
      return { isChanged: this.#replace(controllers), asksLeader: false }
    }
    const merged = this.#merged(told)
    this.#isSettled = isSame(merged, limited(controllers))
    return { isChanged: this.#replace(merged), asksLeader: !this.#isSettled }
  }

  /** @returns whether the sender is another leader than the one before. */
  onLeader(senderId: string, index: bigint): boolean {
    if (this.#leaderIndex !== 0n && index <= this.#leaderIndex) return false
    this.#leaderIndex = index
    const isOther = this.#leaderId !== senderId
    this.#leaderId = senderId
    return isOther
  }

  #replace(controllers: readonly KnownController[]): boolean {
    const next = limited(controllers)
    if (isSame(this.#controllers, next)) return false
    this.#controllers = next
    return true
  }

  /** All that is known or told; the address that the sender was dialed at is one of its own. */
  #merged({ senderId, dialedAddress, controllers }: MembersTold): readonly KnownController[] {
    const byId = new Map<string, string[]>()
    const dialed = [{ id: senderId, addresses: [dialedAddress] }]
    for (const { id, addresses } of [...controllers, ...this.#controllers, ...dialed]) {
      const known = byId.get(id) ?? []
      byId.set(id, [...known, ...addresses.filter((address) => !known.includes(address))])
    }
    return limited([...byId].map(([id, addresses]) => ({ id, addresses })))
  }
}

function limited(controllers: readonly KnownController[]): readonly KnownController[] {
  return bounded({ endpoints: [], apis: [], trustDomain: null, controllers }).controllers
}

/** The order of members and of their addresses tells nothing. */
function isSame(a: readonly KnownController[], b: readonly KnownController[]): boolean {
  return textOf(a) === textOf(b)
}

function textOf(controllers: readonly KnownController[]): string {
  const each = controllers.map(({ id, addresses }) => `${id} ${addresses.toSorted().join(' ')}`)
  return each.toSorted().join('\n')
}
