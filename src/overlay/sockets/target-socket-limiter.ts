import {
  clientSocketsMax,
  descriptorLimits,
  fileDescriptorsMax,
} from '../../lib/bounds/file-descriptors.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { DialFailure } from '../circuits/circuit-endpoint.ts'
import { socketLimits } from './limits.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'

/** A socket of any kind, which emits `close` once. */
interface ClosedOnce {
  once(event: 'close', listener: () => void): unknown
}

/**
 * Counts the sockets to targets from their creation until they close. This includes sockets that
 * still connect, and sockets whose circuit has ended while the target still reads, because a client
 * can end circuits faster than targets close connections. Dialing identities share the maximum
 * fairly.
 */
export class TargetSocketLimiter {
  readonly #room: FairShare

  /**
   * @param socketsMax maximum number of sockets; default: from the limits and the file descriptors
   * of the process.
   */
  constructor(socketsMax = ofProcess()) {
    this.#room = new FairShare(socketsMax)
  }

  /**
   * @param dialedBy identity for which the socket counts.
   * @param open creates the socket, which counts until it emits `close`.
   * @throws {DialFailure} if too many sockets are open.
   */
  open<T extends ClosedOnce>(dialedBy: string, open: () => T): T {
    // @guard sockets-to-targets--room
    if (!this.#room.hasRoomFor(dialedBy)) {
      throw new DialFailure(
        dialErrorCodes.outOfResources,
        'too many connections to targets are open',
      )
    }
    const socket = open()
    this.#room.take(dialedBy)
    // @guard sockets-to-targets--closed
    socket.once('close', () => this.#room.giveBack(dialedBy))
    return socket
  }
}

function ofProcess(): number {
  const descriptors = fileDescriptorsMax() ?? descriptorLimits.descriptorsAssumed
  return Math.min(socketLimits.targetSocketsMax, clientSocketsMax(descriptors))
}
