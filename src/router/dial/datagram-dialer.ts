import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'

import type { Address } from '../../config/router/values.ts'
import type {
  DialRequest,
  LocalCircuits,
  TerminatorDialer,
} from '../../overlay/circuits/circuit-endpoint.ts'
import type { XgressOptions } from '../../overlay/circuits/xgress-options.ts'
import { DatagramApplication } from '../../overlay/sockets/datagram-application.ts'
import { withDialTimeout } from './dial-timeout.ts'
import { parseTarget } from '../../overlay/sockets/target.ts'
import type { TargetSocketLimiter } from '../../overlay/sockets/target-socket-limiter.ts'

export interface DatagramDialerDeps {
  readonly circuits: LocalCircuits
  readonly sockets: TargetSocketLimiter
  readonly flow: XgressOptions
  /** A circuit ends if it transfers no data for this time. */
  readonly idleMs: number
}

/** Address family for each protocol; 0: IPv4 or IPv6. */
const families = { udp: 0, udp4: 4, udp6: 6 } as const

/** Dials `udp:` targets. Each circuit has its own socket, which receives only from the target. */
export class DatagramDialer implements TerminatorDialer {
  readonly #deps: DatagramDialerDeps

  constructor(deps: DatagramDialerDeps) {
    this.#deps = deps
  }

  async dial(
    { circuit, dialedBy, destination, timeoutMs }: DialRequest,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Uint8Array>> {
    const { circuits, flow, idleMs } = this.#deps
    const target = parseTarget(destination, Object.keys(families))
    const socket = await this.#connect(target, dialedBy, timeoutMs, signal)
    const application = new DatagramApplication({
      idleMs,
      transmit: (body, onSent) => socket.send(body, () => onSent()),
      onClosed: () => socket.close(),
    })
    socket.on('error', (error) => application.fail(error.message))
    socket.on('message', (body) => application.onDatagram(body))
    try {
      application.start(circuits.open({ ...circuit, options: flow }, application))
    } catch (error) {
      application.onClosed()
      throw error
    }
    return new Map()
  }

  async #connect(
    target: Address,
    dialedBy: string,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Socket> {
    const opened = open(target, this.#deps.sockets, dialedBy)
    try {
      return await withDialTimeout(opened, target.text, waitMs, signal)
    } catch (error) {
      opened.then(
        (socket) => socket.close(),
        () => undefined,
      )
      throw error
    }
  }
}

async function open(
  { protocol, host, port }: Address,
  sockets: TargetSocketLimiter,
  dialedBy: string,
): Promise<Socket> {
  const wanted = families[protocol as keyof typeof families]
  const family = isIP(host)
  const found = family === 0 ? await lookup(host, { family: wanted }) : { address: host, family }
  const type = found.family === 6 ? 'udp6' : 'udp4'
  // @guard sockets-to-targets--datagrams
  const socket = sockets.open(dialedBy, () => createSocket(type))
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('error', reject)
  socket.connect(port, found.address, () => resolve())
  try {
    await promise
    socket.off('error', reject)
    return socket
  } catch (error) {
    socket.close()
    throw error
  }
}
