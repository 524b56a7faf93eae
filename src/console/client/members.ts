import { computed, signal } from '@preact/signals'

import { MemberOrder } from '../../client/member-order.ts'
import type { ControllerDetail } from './served-types.ts'

/** A controller of the cluster, with its address for browsers. */
export interface BrowserMember {
  readonly id: string
  /** `https://host:port`. */
  readonly origin: string
}

const STORED = 'flotilla.members'

export const browserClock = { monotonicMs: () => performance.now() } as const

/** Addresses of each API of a member, by API name. */
type Addresses = NonNullable<ControllerDetail['apiAddresses']>

/**
 * The origins that the console may call, as the cluster lists them. Only addresses that use HTTPS
 * and serve both APIs are included; the console never guesses an address.
 */
export class MemberOrigins {
  readonly own: string
  /** The members in the order in which requests try them. */
  readonly asked: MemberOrder
  readonly list = signal<readonly BrowserMember[]>([])
  readonly current = signal('')
  /** Origins that have not responded to this browser since they failed. */
  readonly failed = signal<readonly string[]>([])
  /** True while no member responds to this browser. */
  readonly isSilent = computed(() => {
    const failed = new Set(this.failed.value)
    return [this.current.value, ...this.list.value.map(({ origin }) => origin)].every((origin) =>
      failed.has(origin),
    )
  })
  /** The name of the controller that responded last; its origin until the name is known. */
  readonly currentName = computed(() => this.nameOf(this.current.value))

  constructor(own: string) {
    this.own = own
    this.current.value = own
    this.asked = new MemberOrder([own], browserClock, () => {
      this.current.value = this.asked.current
      this.failed.value = this.asked.failed
    })
  }

  /** Replaces the list with the rows in a response of GET /controllers. */
  learn(rows: readonly Pick<ControllerDetail, 'id' | 'apiAddresses'>[]): void {
    const found = rows.flatMap(({ id, apiAddresses }) => {
      const origin = originOf(apiAddresses ?? {}, this.own)
      return origin === null ? [] : [{ id, origin }]
    })
    if (found.length > 0) this.#take(found)
  }

  #take(list: readonly BrowserMember[]): void {
    this.list.value = list
    this.asked.follow([...list.map(({ origin }) => origin), this.own])
  }

  nameOf(origin: string): string {
    return this.list.value.find((member) => member.origin === origin)?.id ?? hostOf(origin)
  }

  /**
   * Stores the list for the next load of this page: the controller that serves the page may then be
   * unreachable.
   */
  store(storage: Storage): void {
    storage.setItem(STORED, JSON.stringify(this.list.value))
  }

  restore(storage: Storage): void {
    try {
      const stored = JSON.parse(storage.getItem(STORED) ?? '[]') as unknown
      if (!Array.isArray(stored)) return
      this.#take(stored.filter(isMember))
    } catch {
      // Ignored: another release may have stored the list in a format that this release cannot
      // read.
    }
  }
}

function isMember(value: unknown): value is BrowserMember {
  const { id, origin } = (value ?? {}) as Partial<BrowserMember>
  return typeof id === 'string' && typeof origin === 'string' && origin.startsWith('https://')
}

/** The origin at which the member serves both APIs; preferably the origin of this page. */
function originOf(addresses: Addresses, own: string): string | null {
  const fabric = new Set(originsIn(addresses['fabric']))
  const both = originsIn(addresses['edge-management']).filter((origin) => fabric.has(origin))
  return both.find((origin) => origin === own) ?? both[0] ?? null
}

function originsIn(list: Addresses[string] = []): string[] {
  return list.flatMap(({ url = '' }) => {
    if (!URL.canParse(url)) return []
    const { protocol, origin } = new URL(url)
    return protocol === 'https:' ? [origin] : []
  })
}

function hostOf(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : origin
}
