import { BlockList, type Socket } from 'node:net'

import { setClientAddress } from '../../lib/bounds/client-address.ts'
import { PendingConnections, socketEndpoint } from '../../lib/bounds/connections.ts'
import type { FairShare } from '../../lib/bounds/fair-share.ts'
import { sourceNetwork } from '../../lib/bounds/source-network.ts'
import { systemClock } from '../../lib/clock.ts'
import { parseIp } from '../../lib/text/ip-address.ts'
import type { HostPort } from '../../lib/text/names.ts'
import { parseCidr } from '../../lib/text/networks.ts'
import type { ProgramLogger } from '../logger.ts'
import { RateLimitedWarningLog } from './rate-limited-warning-log.ts'
import { readUntilDecoded } from './read-until-decoded.ts'
import { readProxyHeader } from './proxy-header.ts'

interface BalancerHeaderReaderDeps {
  /** Key of the listener in the configuration, for the log. */
  readonly listener: string
  /** Networks of the load balancers. */
  readonly balancers: readonly string[]
  readonly handshakeTimeoutMs: number
  /** Maximum connections from load balancers whose header has not arrived completely. */
  readonly hellosWaitingMax: number
  readonly room?: FairShare
  readonly log: Pick<ProgramLogger, 'warn'>
}

/**
 * Reads the header with which a load balancer begins each connection. Closes connections from other
 * hosts, because such a host could send any client address, and the limits and the audit log would
 * use this address.
 */
export class BalancerHeaderReader {
  readonly #deps: BalancerHeaderReaderDeps
  readonly #balancers: BlockList
  readonly #waiting: PendingConnections
  readonly #failures: RateLimitedWarningLog
  /**
   * Addresses of clients, by remote address and port of the TCP connection from the load balancer.
   */
  readonly #clients = new Map<string, HostPort>()

  constructor(deps: BalancerHeaderReaderDeps) {
    this.#deps = deps
    this.#balancers = addressesIn(deps.balancers)
    this.#failures = new RateLimitedWarningLog(deps.log, systemClock)
    this.#waiting = new PendingConnections({
      handshakeTimeoutMs: deps.handshakeTimeoutMs,
      // There is no limit for each load balancer, because one load balancer may have the
      // connections of all clients.
      // @guard client-address-of-a-stranger--waiting
      handshakesMax: deps.hellosWaitingMax,
    })
  }

  /**
   * Calls `done` when the header is read and the socket has the client address that the header
   * contains, if any. Never calls it if the connection is refused or closes first.
   */
  read(socket: Socket, done: () => void): void {
    const { remoteAddress: address = '' } = socket
    // @guard client-address-of-a-stranger--from
    if (!this.#isBalancer(address)) {
      this.#refuse(socket, 'its address is not in proxyProtocol.from')
      return
    }
    const { room } = this.#deps
    const [endpoint, source] = [socketEndpoint(socket), sourceNetwork(address)]
    if (room?.hasRoomFor(source) === false) {
      socket.destroy()
      return
    }
    let isWaiting = true
    const endWait = (): void => {
      if (!isWaiting) return
      isWaiting = false
      this.#waiting.end(endpoint)
      room?.giveBack(source)
    }
    room?.take(source)
    this.#waiting.begin(endpoint, source, socket)
    socket.once('close', () => {
      endWait()
      this.#clients.delete(endpoint)
    })
    readUntilDecoded(socket, readProxyHeader, (header, bytes) => {
      endWait()
      if (header.kind === 'refused') {
        this.#refuse(socket, header.reason)
        return
      }
      if (header.client !== null) {
        this.#clients.set(endpoint, header.client)
        setClientAddress(socket, header.client)
      }
      if (bytes.length > header.byteLength) socket.unshift(bytes.subarray(header.byteLength))
      done()
    })
  }

  /** Makes the TLS socket over a TCP connection use the client address of that connection. */
  passAddressOn(socket: Socket): void {
    const client = this.#clients.get(socketEndpoint(socket))
    // @guard client-address-of-a-stranger--tls
    if (client !== undefined) setClientAddress(socket, client)
  }

  /**
   * Closes the connections whose header has not arrived completely; called when the port closes.
   */
  closeAll(): void {
    this.#waiting.closeAll()
  }

  #isBalancer(address: string): boolean {
    const ip = parseIp(address)
    return ip !== null && this.#balancers.check(ip.text, ip.family)
  }

  #refuse(socket: Socket, reason: string): void {
    const { listener } = this.#deps
    const address = socket.remoteAddress ?? ''
    this.#failures.warn(listener, `connection refused: ${reason}`, { address })
    socket.destroy()
  }
}

function addressesIn(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of networks) {
    const network = parseCidr(text)
    if (network === null) continue
    list.addSubnet(network.address.text, network.prefix, network.address.family)
  }
  return list
}
