import { type Address, parseAddress } from '../../config/router/values.ts'
import { encodeText } from '../../channel/headers.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import { misconfigurationFailure } from './dial-failures.ts'
import { peerDataKey } from '../../channel/messages/peer-data.ts'

/** @throws {DialFailure} if `destination` is not an address with one of these protocols. */
export function parseTarget(destination: string, protocols: readonly string[]): Address {
  const address = parseAddress(destination)
  if (address === null || address.port === 0) {
    throw misconfigurationFailure(`${destination} is no address <protocol>:<host>:<port>`)
  }
  if (!protocols.includes(address.protocol)) {
    const known = protocols.join(', ')
    throw misconfigurationFailure(
      `${destination}: this router dials ${known}, and not ${address.protocol}`,
    )
  }
  return address
}

interface SocketEnds {
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}

/** Peer data with which a client learns the addresses of the connection to the target. */
export function socketAddressPeerData(socket: SocketEnds): ReadonlyMap<number, Uint8Array> {
  const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = socket
  const local = formatHostPort({ host: localAddress, port: localPort })
  const remote = formatHostPort({ host: remoteAddress, port: remotePort })
  return new Map([
    [peerDataKey.terminatorLocalAddress, encodeText(local)],
    [peerDataKey.terminatorRemoteAddress, encodeText(remote)],
  ])
}
