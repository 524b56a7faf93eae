import type { ChannelMessage } from '../../channel/frame.ts'
import { encodeInt32, readInt32, encodeText } from '../../channel/headers.ts'
import { errorMessage } from '../../lib/error-code.ts'
import {
  DialFailure,
  type DialRequest,
  type LocalCircuit,
  type LocalCircuits,
  type TerminatorDialer,
} from '../../overlay/circuits/circuit-endpoint.ts'
import { edgeLimits } from './limits.ts'
import type { ClientCircuitEndpoint } from './client-channel.ts'
import {
  connectionMessage,
  edgeHeaderKey,
  edgeContentType,
  ROUTER_CONNECTION_ID_MIN,
  xgressHeaders,
} from '../../channel/messages/edge.ts'
import type { HostedTerminator } from './hosted-terminator.ts'
import type { HostedTerminatorRegistry } from './hosted-terminator-registry.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'
import { dialRequestHeaders } from '../../channel/messages/peer-data.ts'

export interface EdgeDialerDeps {
  readonly circuits: LocalCircuits
  readonly terminators: Pick<HostedTerminatorRegistry, 'find'>
}

type PeerData = ReadonlyMap<number, Uint8Array>

/** Dials services that clients of this router host. */
export class EdgeDialer implements TerminatorDialer {
  readonly #deps: EdgeDialerDeps

  constructor(deps: EdgeDialerDeps) {
    this.#deps = deps
  }

  async dial(request: DialRequest, signal: AbortSignal): Promise<PeerData> {
    const terminator = this.#deps.terminators.find(request.destination)
    if (terminator === null) {
      const text = `no client hosts the terminator ${request.destination.slice(0, 64)} here`
      throw new DialFailure(dialErrorCodes.invalidTerminator, text)
    }
    return terminator.takesRouterIds
      ? await this.#dialById(terminator, request, signal)
      : await this.#dialOlder(terminator, request, signal)
  }

  /**
   * Dials a host for which the router assigns the connection ID. The connection is created before
   * the router sends the dial to the host.
   */
  async #dialById(
    terminator: HostedTerminator,
    request: DialRequest,
    signal: AbortSignal,
  ): Promise<PeerData> {
    const { client, session, isXgressInClient } = terminator
    const { circuit } = request
    const id = client.nextRouterId()
    if (id === null) throw noRoom()
    const end = isXgressInClient
      ? client.addXgress(id, session, circuit)
      : this.#opened(terminator, id, circuit)
    if (end === null) throw noRoom()
    try {
      const answer = await this.#ask(terminator, request, signal, [
        [edgeHeaderKey.routerProvidedConnId, encodeInt32(id)],
        ...(isXgressInClient ? xgressHeaders(circuit) : []),
      ])
      if (end.isOver) throw new DialFailure(dialErrorCodes.other, 'the host closed the connection')
      return peerDataOf(answer)
    } catch (error) {
      end.abandon('the host was not reached')
      throw error
    }
  }

  /**
   * Dials a host that assigns the connection ID itself. The router informs the host after it has
   * created the connection.
   */
  async #dialOlder(
    terminator: HostedTerminator,
    request: DialRequest,
    signal: AbortSignal,
  ): Promise<PeerData> {
    const { client } = terminator
    const answer = await this.#ask(terminator, request, signal, [])
    const id = (readInt32(new Map([[0, answer.body]]), 0) ?? ROUTER_CONNECTION_ID_MIN) >>> 0
    if (client.faultOfId(id) !== null) {
      throw new DialFailure(dialErrorCodes.other, 'the host named a connection that cannot be')
    }
    const end = this.#opened(terminator, id, request.circuit)
    if (end === null) throw noRoom()
    client.channel.reply(answer, connectionMessage(edgeContentType.stateConnected, id))
    return peerDataOf(answer)
  }

  #opened(
    { client, session }: HostedTerminator,
    id: number,
    circuit: LocalCircuit,
  ): ClientCircuitEndpoint | null {
    const connection = client.addConnection(id, session)
    if (connection === null) return null
    try {
      const { options } = client
      connection.start((application) =>
        this.#deps.circuits.open({ ...circuit, options }, application),
      )
    } catch (error) {
      connection.abandon('the circuit could not be opened')
      throw error
    }
    return connection
  }

  /** @returns the response of a host that accepts the connection. */
  async #ask(
    { client, connectionId, session }: HostedTerminator,
    { circuit, peerData, timeoutMs }: DialRequest,
    signal: AbortSignal,
    more: readonly (readonly [number, Uint8Array])[],
  ): Promise<ChannelMessage> {
    const dial = connectionMessage(
      edgeContentType.dial,
      connectionId,
      [...dialRequestHeaders(peerData), [edgeHeaderKey.circuitId, encodeText(circuit.id)], ...more],
      encodeText(session.token),
    )
    const waitMs = Math.min(edgeLimits.hostDialMsMax, Math.max(1, timeoutMs))
    let answer
    try {
      answer = await client.channel.request(dial, waitMs)
    } catch (error) {
      throw new DialFailure(
        dialErrorCodes.timedOut,
        `the host did not answer: ${errorMessage(error)}`,
      )
    }
    if (signal.aborted) throw new DialFailure(dialErrorCodes.timedOut, 'the dial took too long')
    if (answer.contentType === edgeContentType.dialSuccess) return answer
    const text = Buffer.from(answer.body).toString('utf8').slice(0, REASON_CHARACTERS_MAX)
    throw new DialFailure(dialErrorCodes.rejected, `the host refused the connection: ${text}`)
  }
}

const REASON_CHARACTERS_MAX = 512

/** Peer data with the host's key for end-to-end encryption, if the host has sent one. */
function peerDataOf({ headers }: ChannelMessage): PeerData {
  const key = headers.get(edgeHeaderKey.publicKey)
  return key === undefined ? new Map() : new Map([[edgeHeaderKey.publicKey, key]])
}

function noRoom(): DialFailure {
  return new DialFailure(dialErrorCodes.outOfResources, 'the host has too many connections')
}
