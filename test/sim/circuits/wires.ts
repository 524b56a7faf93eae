import type { Random } from '../../../src/lib/random.ts'
import type { VirtualLoop } from '../virtual-loop.ts'
import { type Party, SimulatedSocket, type SocketWire } from './simulated-socket.ts'

/** A connection between two ends. */
interface Connection {
  readonly ends: readonly [SimulatedSocket, SimulatedSocket]
  /** Earliest arrival times, ms, by receiving end. */
  readonly dueMs: Map<SimulatedSocket, number>
  /** Data sent while the path is cut; it arrives when the path is restored. */
  held: (() => void)[]
  isBroken: boolean
}

const REFUSED_MS = 5

/**
 * The connections between routers and controllers. Bytes of one direction keep their order, and
 * none is lost before the connection breaks. A cut path holds them until it is restored; a party
 * that gives up meanwhile loses them.
 */
export class Wires implements SocketWire {
  readonly #loop: VirtualLoop
  readonly #chance: Random
  readonly #delayMsMax: number
  readonly #connections = new Map<SimulatedSocket, Connection>()
  /** Pairs of names whose path is cut. */
  readonly #cut = new Set<string>()
  /** Extra delay of a pair of names, ms. */
  readonly #slow = new Map<string, number>()

  constructor(loop: VirtualLoop, chance: Random, delayMsMax: number) {
    this.#loop = loop
    this.#chance = chance
    this.#delayMsMax = delayMsMax
  }

  /**
   * @param accept receives the end of the dialed party, in an event of that party; null: no
   * listener.
   * @returns the dialer's end; nothing arrives on it while the path is cut.
   */
  connect(
    from: Party,
    to: Party,
    accept: ((socket: SimulatedSocket) => void) | null,
  ): SimulatedSocket {
    const own = new SimulatedSocket(this, from, to)
    const other = new SimulatedSocket(this, to, from)
    const connection = { ends: [own, other] as const, dueMs: new Map(), held: [], isBroken: false }
    this.#connections.set(own, connection)
    this.#connections.set(other, connection)
    if (accept === null) this.#loop.afterIn(from.context, REFUSED_MS, () => own.over('close'))
    else this.#send(connection, other, () => accept(other))
    return own
  }

  cut(a: string, b: string): void {
    this.#cut.add(pairOf(a, b))
  }

  slow(a: string, b: string, extraMs: number): void {
    this.#slow.set(pairOf(a, b), extraMs)
  }

  mend(a: string, b: string): void {
    this.#cut.delete(pairOf(a, b))
    this.#slow.delete(pairOf(a, b))
    for (const connection of new Set(this.#connections.values())) {
      if (pairOfEnds(connection) !== pairOf(a, b)) continue
      for (const send of connection.held.splice(0)) send()
    }
  }

  mendAll(): void {
    for (const pair of [...this.#cut, ...this.#slow.keys()]) {
      const [a = '', b = ''] = pair.split('|')
      this.mend(a, b)
    }
  }

  /**
   * Breaks each connection between the two parties: data in flight is lost, and both ends notice.
   */
  reset(a: string, b: string): number {
    let count = 0
    for (const connection of new Set(this.#connections.values())) {
      if (connection.isBroken || pairOfEnds(connection) !== pairOf(a, b)) continue
      count += 1
      this.#break(connection)
      for (const end of connection.ends) this.#tell(end)
    }
    return count
  }

  /** @param isSilent the machine has failed: peers of the process notice nothing. */
  processEnded(name: string, isSilent: boolean): void {
    for (const connection of new Set(this.#connections.values())) {
      const isOwn = connection.ends.some(({ owner }) => owner.name === name)
      if (!isOwn || connection.isBroken) continue
      this.#break(connection)
      if (isSilent) continue
      for (const end of connection.ends) if (end.owner.name !== name) this.#tell(end)
    }
  }

  carry(from: SimulatedSocket, bytes: Uint8Array): void {
    const connection = this.#connections.get(from)
    if (connection === undefined || connection.isBroken) return
    const to = otherOf(connection, from)
    this.#send(connection, to, () => {
      to.arrive(bytes, () => {
        this.#loop.afterIn(from.owner.context, 0, () => from.gone(bytes.length))
      })
    })
  }

  end(from: SimulatedSocket): void {
    const connection = this.#connections.get(from)
    if (connection === undefined || connection.isBroken) return
    const to = otherOf(connection, from)
    this.#send(connection, to, () => to.over('end'))
  }

  /** Data that was written before arrives or is lost at random. */
  destroy(from: SimulatedSocket): void {
    const connection = this.#connections.get(from)
    if (connection === undefined) return
    this.#connections.delete(from)
    if (connection.isBroken) return
    const to = otherOf(connection, from)
    if (this.#chance.next() < 0.5) {
      this.#break(connection)
      this.#tell(to)
    } else {
      this.#send(connection, to, () => {
        connection.isBroken = true
        to.over('close')
      })
    }
  }

  soon(socket: SimulatedSocket, task: () => void): void {
    this.#loop.afterIn(socket.owner.context, 0, task)
  }

  #break(connection: Connection): void {
    connection.isBroken = true
    connection.held = []
  }

  #tell(end: SimulatedSocket): void {
    this.#connections.delete(end)
    this.#loop.afterIn(end.owner.context, this.#chance.integer(0, this.#delayMsMax), () => {
      end.over('close')
    })
  }

  /** Delivers data in order, as an event of the receiving process. */
  #send(connection: Connection, to: SimulatedSocket, task: () => void): void {
    const pair = pairOfEnds(connection)
    if (this.#cut.has(pair)) {
      connection.held.push(() => this.#send(connection, to, task))
      return
    }
    const extraMs = (this.#slow.get(pair) ?? 0) * this.#chance.next()
    const delayMs = this.#chance.integer(0, this.#delayMsMax) + extraMs
    const dueMs = Math.max(connection.dueMs.get(to) ?? 0, this.#loop.nowMs + delayMs)
    connection.dueMs.set(to, dueMs)
    this.#loop.afterIn(to.owner.context, dueMs - this.#loop.nowMs, () => {
      if (!connection.isBroken) task()
    })
  }
}

function otherOf({ ends }: Connection, one: SimulatedSocket): SimulatedSocket {
  return ends[0] === one ? ends[1] : ends[0]
}

function pairOf(a: string, b: string): string {
  return a < b ? `${a}|${b}` : `${b}|${a}`
}

function pairOfEnds({ ends: [one] }: Connection): string {
  return pairOf(one.owner.name, one.peer.name)
}
