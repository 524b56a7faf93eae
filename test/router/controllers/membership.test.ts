import { describe, expect, test } from 'vitest'

import type { KnownController } from '../../../src/router/controllers/endpoints-file.ts'
import { ControllerMembership } from '../../../src/router/controllers/membership.ts'
import { controllerLimits } from '../../../src/router/controllers/limits.ts'

const at = (id: string): string => `tls:${id}.test:6262`
const keyOf = (name: string): string => Buffer.from(name.padEnd(32)).toString('hex')
const words = (text: string): string[] => (text === '' ? [] : text.split(' '))

interface ToldOptions {
  readonly index?: number
  readonly isLeader?: boolean
  readonly removed?: string
  /** Additional addresses of a controller. */
  readonly elsewhere?: Readonly<Record<string, readonly string[]>>
  /** Addresses of the client API of a controller. */
  readonly apis?: Readonly<Record<string, readonly string[]>>
  /** Key names of controllers whose key name differs from their ID. */
  readonly keys?: Readonly<Record<string, string>>
}

/**
 * A router with a simulated clock. `a b` are the IDs of controllers, whose keys have the same
 * names.
 */
class Stage {
  readonly #clock = { nowMs: 0 }
  members: ControllerMembership
  readonly #configured: readonly string[]

  constructor(known: string, configured = '') {
    this.#configured = words(configured).map(at)
    const controllers = words(known).map((id) => ({
      id,
      addresses: [at(id)],
      keySha256: null,
      toldBy: null,
    }))
    this.members = this.#membership(controllers, [])
  }

  #membership(
    controllers: readonly KnownController[],
    removed: ControllerMembership['removed'],
  ): ControllerMembership {
    const clock = { monotonicMs: () => this.#clock.nowMs }
    return new ControllerMembership({
      clock,
      controllers,
      removed,
      configured: this.#configured,
    })
  }

  /** Restarts the router, which loses everything that it has not written to its file. */
  restart(): void {
    this.members = this.#membership(this.members.controllers, this.members.removed)
  }

  wait(ms: number): void {
    this.#clock.nowMs += ms
    this.members.onTime()
  }

  connect(id: string, key = id): void {
    this.members.onConnected(id, at(id), keyOf(key))
  }

  close(id: string): void {
    this.members.onClosed(id)
  }

  /** Connects a controller, if it is not connected, and lets it send a list of members. */
  says(senderId: string, listed: string, options: ToldOptions = {}): boolean {
    const {
      index = 1,
      isLeader = false,
      removed = '',
      elsewhere = {},
      keys = {},
      apis = {},
    } = options
    if (!this.#met.has(senderId)) this.connect(senderId)
    this.#met.add(senderId)
    return this.members.onMembers({
      senderId,
      index: BigInt(index),
      isLeader,
      controllers: words(listed).map((id) => ({
        id,
        addresses: elsewhere[id] ?? [at(id)],
        apis: apis[id] ?? [],
        keySha256: keyOf(keys[id] ?? id),
      })),
      removed: words(removed).map((id) => ({ id, keySha256: keyOf(id) })),
    })
  }
  readonly #met = new Set<string>()

  /** Lets a connected controller send a list of members, whichever address the router used. */
  answers(senderId: string, listed: string): void {
    this.#met.add(senderId)
    this.says(senderId, listed)
  }

  /**
   * IDs of all known controllers; those in brackets are listed by some controllers but not by a
   * majority.
   */
  get known(): string {
    return this.members.controllers
      .map(({ id, toldBy }) => (toldBy === null ? id : `(${id})`))
      .sort()
      .join(' ')
  }

  addressesOf(id: string): readonly string[] {
    return this.members.controllers.find((known) => known.id === id)?.addresses ?? []
  }

  keyOf(id: string): string | null {
    return this.members.controllers.find((known) => known.id === id)?.keySha256 ?? null
  }
}

const DAY_MS = controllerLimits.controllerAbsentMs

describe('The controllers that a router knows', () => {
  test('are those in the first controller’s list, if the router did not know any before', () => {
    const stage = new Stage('', 'a')
    expect(stage.says('a', 'a b c')).toBe(true)
    expect(stage.known).toBe('a b c')
    expect(stage.members.isDisputed).toBe(false)
  })

  test('lose a controller only if a majority does not list it', () => {
    const stage = new Stage('a b c')
    stage.says('a', 'a b', { index: 9, isLeader: true })
    expect([stage.known, stage.members.isDisputed]).toEqual(['a b c', true])
    stage.says('b', 'a b', { index: 9 })
    expect([stage.known, stage.members.isDisputed]).toEqual(['a b', false])
  })

  test.each([
    ['of two', 'a b', 'b'],
    ['of three', 'a b c', 'c'],
    ['of five', 'a b c d e', 'e'],
  ])(
    'keep all controllers if only one %s omits the others, whatever index it claims',
    (_, known, captor) => {
      const stage = new Stage(known)
      stage.says(captor, captor, { index: 1e12, isLeader: true })
      stage.says(captor, captor, { index: 2e12, isLeader: true })
      expect(stage.known).toBe(known)
      expect(stage.members.index).toBe(0n)
      stage.restart()
      expect(stage.known).toBe(known)
    },
  )

  test('are updated by later lists of the other controllers after one controller has claimed a huge index', () => {
    const stage = new Stage('a b c')
    for (const id of ['a', 'b']) stage.says(id, 'a b c', { index: 5 })
    stage.says('c', 'a b c', { index: 1e12, isLeader: true })
    expect(stage.members.index).toBe(5n)
    for (const id of ['a', 'b']) stage.says(id, 'a b', { index: 6, removed: 'c' })
    expect(stage.known).toBe('a b')
    expect(stage.members.leaderId).toBe(null)
  })

  test('gain a listed controller unless a majority omits it; the lists of this controller count once a majority lists it', () => {
    const stage = new Stage('a b c')
    stage.says('a', 'a b c d')
    expect(stage.known).toBe('(d) a b c')
    stage.says('d', 'd')
    expect(stage.known, 'it has no vote yet').toBe('(d) a b c')
    stage.says('b', 'a b c d')
    expect(stage.known).toBe('a b c d')
  })

  test('lose a controller that was listed by only one other controller when that one stops listing it', () => {
    const stage = new Stage('a b c')
    stage.says('a', 'a b c d')
    stage.says('a', 'a b c')
    expect(stage.known).toBe('a b c')
  })

  test('keep a controller that only one other controller listed, even after a restart, until the others omit it', () => {
    const stage = new Stage('a b c')
    stage.says('a', 'a b c d')
    stage.restart()
    expect(stage.known).toBe('(d) a b c')
    stage.says('b', 'a b c')
    stage.says('c', 'a b c')
    expect(stage.known).toBe('a b c')
  })

  test('lose the controllers that only a removed controller listed, together with the removed controller', () => {
    const stage = new Stage('a b c')
    stage.says('c', 'a b c x y')
    expect(stage.known).toBe('(x) (y) a b c')
    stage.says('a', 'a b')
    expect(stage.known, 'c, x and y are listed by one of two').toBe('(x) (y) a b c')
    stage.says('b', 'a b')
    expect(stage.known).toBe('a b')
  })

  test('gain only a few controllers from one controller’s list, but all that a majority lists', () => {
    const stage = new Stage('a b c')
    const many = Array.from({ length: 100 }, (_, number) => `x${number}`).join(' ')
    stage.says('c', `a b c ${many}`)
    const { controllersReportedByOneMax, controllersMax } = controllerLimits
    expect(stage.members.controllers).toHaveLength(3 + controllersReportedByOneMax)
    const others = Array.from({ length: 20 }, (_, number) => `m${number}`)
    for (const id of ['a', 'b']) stage.says(id, `a b c ${others.join(' ')}`)
    const ids = stage.members.controllers.map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining(['a', 'b', 'c', ...others]))
    const first = new Stage('', 'a')
    first.says('a', `a ${many}`)
    expect(first.members.controllers).toHaveLength(controllersMax)
  })

  test('do not change because of an empty list, or because of a list from a controller that is not one of them', () => {
    const stage = new Stage('a b')
    expect(stage.says('a', '')).toBe(false)
    stage.members.onMembers({
      senderId: 'z',
      index: 9n,
      isLeader: true,
      controllers: [{ id: 'z', addresses: [at('z')], apis: [], keySha256: null }],
      removed: [],
    })
    expect(stage.known).toBe('a b')
  })
})

describe('The client APIs of controllers that a router knows', () => {
  const apis = { a: ['https://a.test:8441'], b: ['https://b.test:8442'], c: ['https://c.test'] }
  const all = [...apis.a, ...apis.b, ...apis.c]

  test('are the APIs that a majority of the voting controllers lists', () => {
    const stage = new Stage('a b c')
    stage.says('a', 'a b c', { apis })
    expect(stage.members.apis).toEqual([])
    stage.says('b', 'a b c', { apis })
    expect(stage.members.apis).toEqual(all)
  })

  test('are kept while controllers of earlier releases do not list any', () => {
    const stage = new Stage('a b c')
    for (const id of ['a', 'b', 'c']) stage.says(id, 'a b c', { apis })
    for (const id of ['a', 'b']) stage.says(id, 'a b c')
    expect(stage.members.apis).toEqual(all)
    stage.restart()
    expect(stage.members.apis).toEqual(all)
  })

  test('change once a majority lists another API', () => {
    const stage = new Stage('a b c')
    for (const id of ['a', 'b', 'c']) stage.says(id, 'a b c', { apis })
    const moved = { ...apis, a: ['https://a.test:9441'] }
    stage.says('a', 'a b c', { apis: moved })
    expect(stage.members.apis).toEqual(all)
    stage.says('b', 'a b c', { apis: moved })
    expect(stage.members.apis).toEqual([...moved.a, ...apis.b, ...apis.c])
  })

  test('come from a single reachable controller once the others had time to respond', () => {
    const stage = new Stage('', 'a b c')
    stage.says('a', 'a b c', { apis })
    expect(stage.members.apis).toEqual([])
    stage.wait(controllerLimits.apisByFewAfterMs)
    stage.says('a', 'a b c', { apis })
    expect(stage.members.apis).toEqual(all)
  })
})

describe('When the number of controllers in a cluster decreases', () => {
  test('from two to one, a router removes the controller that left, because each of the two controllers sent a list without it', () => {
    const stage = new Stage('a b', 'a b')
    stage.says('a', 'a b')
    stage.says('b', 'a b')
    stage.says('b', 'a')
    stage.close('b')
    expect(stage.known).toBe('a b')
    stage.says('a', 'a', { removed: 'b' })
    expect(stage.known).toBe('a')
  })

  test('from two to one, if only the remaining controller sent a list without the controller that left, a router removes that controller a day after its connection closed', () => {
    const stage = new Stage('a b')
    stage.says('a', 'a b')
    stage.says('b', 'a b')
    stage.close('b')
    stage.says('a', 'a')
    stage.wait(DAY_MS - 1)
    expect(stage.known).toBe('a b')
    stage.wait(1)
    expect(stage.known).toBe('a')
  })

  test('a router that reaches only one controller removes unlisted controllers that were disconnected for a day', () => {
    const stage = new Stage('a b c')
    stage.says('a', 'a b')
    stage.wait(DAY_MS - 1)
    expect(stage.known).toBe('a b c')
    stage.wait(1)
    expect(stage.known, 'b is listed').toBe('a b')
  })

  test('while a router is switched off, the router removes the missing controllers once it reaches a majority again', () => {
    const stage = new Stage('a b c d e')
    stage.says('e', 'e', { index: 1e12, isLeader: true })
    stage.says('d', 'd e', { index: 1e12 })
    for (const id of ['a', 'b']) stage.says(id, 'a b c', { removed: 'd e' })
    expect(stage.known, 'only d itself and two of five list d').toBe('a b c e')
    stage.says('c', 'a b c', { removed: 'd e' })
    expect(stage.known).toBe('a b c')
  })
})

describe('When a cluster has lost its majority', () => {
  test('a router uses the recovered cluster immediately, and replaces the lost controllers after a day', () => {
    const stage = new Stage('a b c', 'a b c')
    stage.says('a', 'a', { removed: 'b c' })
    expect(stage.known).toBe('a b c')
    for (const id of ['a', 'd', 'e']) stage.says(id, 'a d e', { removed: 'b c' })
    expect(stage.known, 'new controllers are used').toBe('(d) (e) a b c')
    stage.wait(DAY_MS)
    expect(stage.known).toBe('a d e')
    expect(stage.members.refusal('b', keyOf('b'))).toContain('removed')
  })

  test('a router uses the new controllers, even if all controllers that it knew before are gone', () => {
    const stage = new Stage('a b c')
    for (const id of ['a', 'd', 'e']) stage.says(id, 'a d e')
    stage.close('a')
    for (const id of ['d', 'e']) stage.says(id, 'd e f')
    expect(stage.known).toBe('(d) (e) a b c')
    stage.wait(DAY_MS)
    expect(stage.known).toBe('d e f')
  })

  test('a router ignores the time during which it was switched off, and keeps disconnected controllers that the only connected controller lists', () => {
    const stage = new Stage('a b c')
    stage.wait(DAY_MS * 30)
    stage.restart()
    stage.says('c', 'c')
    expect(stage.known, 'the router was off').toBe('a b c')
    const other = new Stage('a b c')
    other.says('a', 'a b c')
    other.wait(DAY_MS * 30)
    expect(other.known, 'they are listed').toBe('a b c')
  })
})

describe('A controller at an address in a router’s configuration', () => {
  test('counts toward a majority, so that two such controllers suffice for a router that knows only a compromised controller', () => {
    const stage = new Stage('x', 'a b')
    stage.says('x', 'x', { removed: 'a b', index: 1e12, isLeader: true })
    stage.connect('a')
    stage.says('a', 'a b', { removed: 'x' })
    expect(stage.known).toBe('(b) a x')
    stage.says('b', 'a b', { removed: 'x' })
    expect(stage.known).toBe('a b')
    expect(stage.members.refusal('x', keyOf('x'))).toContain('removed')
  })

  test('counts only once per address toward a majority, even if several IDs answer at the address', () => {
    const stage = new Stage('a b c', 'a b c')
    stage.connect('c')
    const minted = words('x y z v')
    for (const id of minted) {
      stage.members.onConnected(id, at('c'), keyOf(id))
      stage.says('c', 'c')
      stage.answers(id, `c ${minted.join(' ')}`)
    }
    expect(stage.known).toBe('(v) (x) (y) (z) a b c')
    stage.says('a', 'a b')
    stage.says('b', 'a b')
    expect(stage.known).toBe('a b')
  })

  test('is not counted if it answers at the address of another controller, even after a restart', () => {
    const stage = new Stage('a b c', 'a b c')
    stage.connect('c')
    for (const id of words('x y z')) {
      stage.restart()
      stage.members.onConnected(id, at('c'), keyOf(id))
      stage.answers(id, `c ${id}`)
    }
    expect(stage.known).toBe('(z) a b c')
  })

  test('is used without counting toward a majority if all known controllers are gone, and counts after a day', () => {
    const stage = new Stage('a', 'a')
    stage.connect('a')
    stage.close('a')
    stage.members.onConnected('d', at('a'), keyOf('d'))
    stage.answers('d', 'd')
    expect(stage.known).toBe('(d) a')
    stage.wait(DAY_MS)
    expect(stage.known).toBe('a d')
    stage.close('d')
    expect(stage.known).toBe('a d')
  })

  test('counts toward a majority even if a compromised controller lists the address as its own', () => {
    const stage = new Stage('x', 'a b')
    stage.says('x', 'x', { elsewhere: { x: [at('x'), at('a'), at('b')] } })
    stage.says('a', 'a b')
    stage.says('b', 'a b')
    expect(stage.known).toBe('a b')
  })

  test('is kept even if the only other controller omits it from its list', () => {
    const stage = new Stage('x', 'a')
    stage.says('a', 'a')
    stage.says('x', 'x', { removed: 'a', keys: { a: 'forged' } })
    expect(stage.known).toBe('a x')
    expect(stage.members.refusal('a', keyOf('a'))).toBe(null)
  })

  test('is not used as a controller if both known controllers omit it from their lists', () => {
    const stage = new Stage('a b', 'c')
    for (const id of ['a', 'b']) stage.says(id, 'a b')
    stage.connect('c')
    expect(stage.known).toBe('a b')
  })
})

describe('The keys of controllers that a router knows', () => {
  test('are pinned when a majority lists them, and another key with the same id is then refused', () => {
    const stage = new Stage('a b c')
    stage.says('a', 'a b c')
    expect(stage.members.refusal('c', keyOf('minted'))).toBe(null)
    stage.says('b', 'a b c')
    expect(stage.members.refusal('c', keyOf('minted'))).toBe(
      'the key of controller c is not the one that the other controllers have pinned; if the cluster was restored from a backup into a new cluster, or recovered after a lost quorum, stop this router and type: flotilla router reset CONFIG. Otherwise treat the key of the issuing authority as stolen',
    )
    expect(stage.members.refusal('c', keyOf('c'))).toBe(null)
    stage.restart()
    expect(stage.keyOf('c')).toBe(keyOf('c'))
  })

  test('are changed only by a majority, when an ID returns with another key', () => {
    const stage = new Stage('a b c')
    for (const id of ['a', 'b']) stage.says(id, 'a b c')
    stage.says('c', 'a b c', { keys: { a: 'forged', b: 'forged' } })
    expect([stage.keyOf('a'), stage.keyOf('b')]).toEqual([keyOf('a'), keyOf('b')])
    for (const id of ['a', 'b']) stage.says(id, 'a b c', { keys: { c: 'new' } })
    expect(stage.members.refusal('c', keyOf('new'))).toBe(null)
    expect(stage.members.refusal('c', keyOf('c'))).not.toBe(null)
  })

  test('are pinned from a controller’s own list if it is the only controller', () => {
    const stage = new Stage('', 'a')
    stage.says('a', 'a')
    expect(stage.keyOf('a')).toBe(keyOf('a'))
  })

  test('are refused once a majority lists them as removed; a router that knows only one controller ignores the removed keys that this controller lists', () => {
    const stage = new Stage('a b c d')
    for (const id of ['a', 'b']) stage.says(id, 'a b c d', { removed: 'x' })
    expect(stage.members.removed).toEqual([])
    stage.says('c', 'a b c d', { removed: 'x' })
    expect(stage.members.refusal('x', keyOf('x'))).toBe('controller x was removed from the cluster')
    stage.restart()
    expect(stage.members.refusal('x', keyOf('x'))).not.toBe(null)
    expect(stage.members.refusal('x', keyOf('another'))).toBe(null)
    const alone = new Stage('a')
    alone.says('a', 'a', { removed: 'x' })
    expect(alone.members.removed).toEqual([])
  })

  test('are accepted again once a majority lists the removed controllers as members', () => {
    const stage = new Stage('a b')
    for (const id of ['a', 'b']) stage.says(id, 'a b', { removed: 'c' })
    stage.says('a', 'a b c', { removed: 'c' })
    expect([stage.known, stage.members.removed.length]).toEqual(['a b', 1])
    for (const id of ['a', 'b']) stage.says(id, 'a b c')
    expect([stage.known, stage.members.removed.length]).toEqual(['a b c', 0])
    expect(stage.members.refusal('c', keyOf('c'))).toBe(null)
  })

  test('are remembered after a removal up to a limit; the newest are kept', () => {
    const stage = new Stage('a b')
    const gone = Array.from({ length: 100 }, (_, number) => `x${number}`)
    for (const id of ['a', 'b']) stage.says(id, 'a b', { removed: gone.join(' ') })
    expect(stage.members.removed.map(({ id }) => id)).toEqual(
      gone.slice(-controllerLimits.removedControllersMax),
    )
  })
})

describe('The addresses of a controller that a router knows', () => {
  test('are the addresses that a majority lists', () => {
    const stage = new Stage('a b c')
    const moved = { elsewhere: { c: ['tls:moved.test:1'] } }
    stage.says('a', 'a b c', moved)
    expect(stage.addressesOf('c')).toEqual([at('c')])
    stage.says('b', 'a b c', moved)
    expect(stage.addressesOf('c')).toEqual(['tls:moved.test:1'])
  })

  test('that only one controller lists are dialed after the others, up to a limit', () => {
    const stage = new Stage('a b c')
    const many = Array.from({ length: 50 }, (_, number) => `tls:x${number}.test:1`)
    stage.says('c', 'a b c', { elsewhere: { a: many } })
    stage.says('b', 'a b c', { elsewhere: { a: ['tls:moved.test:1'] } })
    const [known] = stage.members.controllers
    expect(known?.addresses).toEqual([at('a')])
    expect(known === undefined ? [] : stage.members.dialAddresses(known)).toEqual([
      at('a'),
      'tls:moved.test:1',
      'tls:x0.test:1',
      'tls:x1.test:1',
    ])
  })

  test('include the address at which the controller responded, until a majority lists another address', () => {
    const stage = new Stage('a b c')
    stage.members.onConnected('a', 'tls:alias.test:1', keyOf('a'))
    expect(stage.addressesOf('a')).toEqual(['tls:alias.test:1', at('a')])
    for (const id of ['b', 'c']) stage.says(id, 'a b c')
    expect(stage.addressesOf('a')).toEqual([at('a')])
  })
})

test('A router regards as leader the controller that was the last to claim leadership', () => {
  const stage = new Stage('a b c')
  stage.says('a', 'a b c', { isLeader: true })
  expect(stage.members.leaderId).toBe('a')
  stage.members.onLeader('b')
  expect(stage.members.leaderId).toBe('b')
  stage.says('b', 'a b c', { isLeader: false })
  expect(stage.members.leaderId).toBe(null)
})
