import { clientSocketsMax, descriptorLimits, descriptorsMax } from '../../lib/bounds/descriptors.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { DialFailure } from '../circuits/circuit-ends.ts'
import { socketLimits } from './limits.ts'
import { dialError } from '../../channel/messages/dial-error.ts'

/** A socket to a target, of any kind. */
interface ClosedOnce {
  once(event: 'close', listener: () => void): unknown
}

/**
 * Sockets to targets, from when they are opened until they are closed: those that are being
 * connected, and those whose circuit has ended while their target reads on, are among them. Who
 * dials shares the room, as a client ends circuits faster than targets close.
 */
export class TargetSockets {
  readonly #room: FairShare

  /** @param socketsMax of all; absent: as the limits and the descriptors of the process allow. */
  constructor(socketsMax = ofProcess()) {
    this.#room = new FairShare(socketsMax)
  }

  /**
   * @param dialedBy whose socket it is.
   * @param open makes the socket, which is counted until its event `close`.
   * @throws {DialFailure} when too many are open.
   */
  open<T extends ClosedOnce>(dialedBy: string, open: () => T): T {
    // @guard sockets-to-targets--room
    if (!this.#room.hasRoomFor(dialedBy)) {
      throw new DialFailure(dialError.outOfResources, 'too many connections to targets are open')
    }
    const socket = open()
    this.#room.take(dialedBy)
    // @guard sockets-to-targets--closed
    socket.once('close', () => this.#room.giveBack(dialedBy))
    return socket
  }
}

function ofProcess(): number {
  const descriptors = descriptorsMax() ?? descriptorLimits.descriptorsAssumed
  return Math.min(socketLimits.targetSocketsMax, clientSocketsMax(descriptors))
}
