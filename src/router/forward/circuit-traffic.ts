interface Count {
  msgs: number
  bytes: number
}

/**
 * Sides of a router: links (`fabric`), circuit endpoints for clients (`ingress`), and circuit
 * endpoints at terminators (`egress`).
 */
type TrafficSide = 'fabric' | 'ingress' | 'egress'

const count = (): { readonly rx: Count; readonly tx: Count } => ({
  rx: { msgs: 0, bytes: 0 },
  tx: { msgs: 0, bytes: 0 },
})

/** Messages and bytes of circuits since the start of the router, by side and direction. */
export class CircuitTraffic {
  readonly #sides = { fabric: count(), ingress: count(), egress: count() }

  /** Counts a message that the router received at its links, at a client or at a terminator. */
  received(side: TrafficSide, { body }: { readonly body: Uint8Array }): void {
    const { rx } = this.#sides[side]
    rx.msgs += 1
    rx.bytes += body.length
  }

  /** Counts a message that the router sent to its links, to a client or to a terminator. */
  sent(side: TrafficSide, { body }: { readonly body: Uint8Array }): void {
    const { tx } = this.#sides[side]
    tx.msgs += 1
    tx.bytes += body.length
  }

  /** Counters by name, such as `fabric.rx.msgs` and `egress.tx.bytes`. */
  figures(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      Object.entries(this.#sides).flatMap(([side, directions]) =>
        Object.entries(directions).flatMap(([direction, { msgs, bytes }]) => [
          [`${side}.${direction}.msgs`, msgs] as const,
          [`${side}.${direction}.bytes`, bytes] as const,
        ]),
      ),
    )
  }
}

/** The side at which the router counts the messages of a circuit endpoint. */
export function circuitEndpointSide(isTerminator: boolean): TrafficSide {
  return isTerminator ? 'egress' : 'ingress'
}
