import type { ChannelMessage } from '../../channel/frame.ts'
import { encodeFlag, readFlag, readText, encodeText } from '../../channel/headers.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { KeyedTasks } from '../../lib/keyed-tasks.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import type {
  CircuitApplication,
  LocalCircuit,
  LocalCircuits,
} from '../../overlay/circuits/circuit-endpoint.ts'
import { edgeLimits } from './limits.ts'
import type { RateLimitedWarningLog } from '../../overlay/sockets/rate-limited-warning-log.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { BearerSessions } from './bearer-sessions.ts'
import type { ClientChannel } from './client-channel.ts'
import type { ClientConnection } from './client-connection.ts'
import {
  connectionMessage,
  edgeErrorCode,
  edgeHeaderKey,
  edgeContentType,
  connectionClosedMessage,
  xgressHeaders,
} from '../../channel/messages/edge.ts'
import { type ServiceSession, readServiceSession } from './service-session.ts'
import {
  type CircuitRequestOutcome,
  circuitRequestMessage,
  readCircuitResponse,
} from '../../channel/messages/circuit-requests.ts'
import { connectResponseHeaders, peerDataFromClient } from '../../channel/messages/peer-data.ts'

const { connectsWaitingMax } = edgeLimits
const ID_CHARACTERS_MAX = 128

export interface ConnectRequestHandlerDeps {
  readonly circuits: LocalCircuits
  readonly log: ProgramLogger
  readonly failures: RateLimitedWarningLog
  /** Requests by identity, over all channels and listeners. */
  readonly tasks: KeyedTasks
  /** The controller for requests of this client; null if no controller is connected. */
  readonly controllerFor: (client: ClientChannel) => ControlConnection | null
  /** The ID of a service that the identity may dial; null if there is none with this name. */
  readonly serviceIdNamed: (name: string, identityId: string) => string | null
  /**
   * Resolves when the controller has answered all posture reports of the client, or their timeouts
   * have expired.
   */
  readonly postureSettled: (client: ClientChannel, controllerId: string) => Promise<void>
  readonly timeoutMs: number
}

type MadeCircuit = Extract<CircuitRequestOutcome, { kind: 'made' }>

/** A client's request for a connection. */
interface Asked {
  readonly client: ClientChannel
  readonly message: ChannelMessage
  readonly id: number
  readonly session: ServiceSession
}

/**
 * Handles the connect requests of clients. A controller authorizes each request and creates its
 * circuit. An identity with many pending requests delays only its own requests, regardless of how
 * many channels it uses.
 */
export class ConnectRequestHandler {
  readonly #deps: ConnectRequestHandlerDeps

  constructor(deps: ConnectRequestHandlerDeps) {
    this.#deps = deps
  }

  connect(client: ClientChannel, message: ChannelMessage, id: number): void {
    const session = readServiceSession(message.body)
    if (session === null) client.refuse(message, id, 'the request shows no service session')
    else this.#connect(client, message, id, session)
  }

  /**
   * Handles the request of an OIDC client, which names the service by ID or name and presents no
   * service session.
   */
  connectByService(client: ClientChannel, message: ChannelMessage, id: number): void {
    const { session } = client.client
    const shown = readText(message.headers, edgeHeaderKey.serviceId) ?? ''
    const isName = message.headers.get(edgeHeaderKey.serviceIdentifierType)?.[0] === 1
    const { serviceIdNamed } = this.#deps
    const serviceId = isName ? serviceIdNamed(shown, session.identityId) : shown
    if (!BearerSessions.isMeant(session.token)) {
      client.refuse(message, id, 'the API session is not one of OIDC: show a service session')
    } else if (serviceId === null || serviceId === '' || serviceId.length > ID_CHARACTERS_MAX) {
      client.refuse(message, id, 'no such service', edgeErrorCode.invalidService)
    } else this.#connect(client, message, id, { token: '', id: null, serviceId })
  }

  #connect(
    client: ClientChannel,
    message: ChannelMessage,
    id: number,
    session: ServiceSession,
  ): void {
    const { tasks } = this.#deps
    const fault = client.faultOfId(id) ?? this.#faultOfRoom(client)
    if (fault !== null) {
      client.refuse(message, id, fault)
      return
    }
    const asked = { client, message, id, session }
    // The connection ID counts as used from here until the connection ends or the request fails.
    const connection = client.addConnection(id, session, message)
    if (connection === null) {
      client.refuse(message, id, 'too many connections')
      return
    }
    // @guard dials-of-one-client--channels
    void tasks.run(client.client.session.identityId, () => this.#make(asked, connection))
  }

  #faultOfRoom({ client }: ClientChannel): string | null {
    const { tasks, failures } = this.#deps
    const { identityId } = client.session
    // @guard dials-of-one-client--waiting
    if (tasks.count(identityId) < connectsWaitingMax) return null
    failures.warnOf(identityId, 'too many dials of a client wait', { identityId })
    return 'too many requests wait'
  }

  async #make(asked: Asked, connection: ClientConnection): Promise<void> {
    const { client, message, id } = asked
    try {
      if (connection.isOver) return
      const controller = this.#deps.controllerFor(client)
      if (controller === null) throw new Error('no controller is connected')
      await this.#deps.postureSettled(client, controller.id)
      const answer = await this.#ask(controller, asked)
      if (answer.kind === 'made') this.#open(asked, connection, controller, answer)
      else if (!connection.isOver) {
        this.#refuse(asked, answer)
        connection.abandon('refused')
      }
    } catch (error) {
      if (connection.isOver) return
      client.refuse(message, id, errorMessage(error), edgeErrorCode.internal)
      connection.abandon('failed')
    }
  }

  async #ask(
    { channel }: ControlConnection,
    { client, message, session }: Asked,
  ): Promise<CircuitRequestOutcome> {
    const request = circuitRequestMessage({
      ...client.claimOf(session),
      identityId: client.client.session.identityId,
      serviceId: session.serviceId,
      instanceId: readText(message.headers, edgeHeaderKey.terminatorIdentity) ?? '',
      peerData: peerDataFromClient(message, client.client.session.identityId),
    })
    return readCircuitResponse(await channel.request(request, this.#deps.timeoutMs))
  }

  #refuse(
    { client, message, id }: Asked,
    answer: Exclude<CircuitRequestOutcome, MadeCircuit>,
  ): void {
    const { text, code, retryHint, circuitId } = answer
    const reason = {
      text,
      ...(code === null ? {} : { code, retryHint }),
      ...(circuitId === null ? {} : { circuitId }),
    }
    client.channel.reply(message, connectionClosedMessage(id, reason))
  }

  #open(
    asked: Asked,
    connection: ClientConnection,
    owner: ControlConnection,
    made: MadeCircuit,
  ): void {
    const { client, message, id, session } = asked
    const { options } = client
    const circuit = { id: made.id, address: made.address, owner, isTerminator: false, options }
    if (connection.isOver || client.channel.isClosed) {
      this.#abandon(circuit)
      return
    }
    if (!readFlag(message.headers, edgeHeaderKey.useXgressToSdk)) {
      // The response is sent before any payload of the circuit.
      client.channel.reply(message, connectedMessage(asked, made, []))
      connection.start((application) => this.#deps.circuits.open(circuit, application))
      return
    }
    connection.abandon('the client keeps the end of its circuit')
    const xgress = client.addXgress(id, session, circuit)
    if (xgress === null) {
      this.#abandon(circuit)
      client.refuse(message, id, 'too many connections')
    } else {
      client.channel.reply(message, connectedMessage(asked, made, xgressHeaders(circuit)))
    }
  }

  /**
   * Ends a circuit that its client cannot use, for example because the client has disconnected.
   * This also informs the other endpoint.
   */
  #abandon(circuit: LocalCircuit): void {
    const { circuits, log } = this.#deps
    try {
      circuits.open(circuit, nobody).abort('the client is gone')
    } catch (error) {
      log.warn({ circuitId: circuit.id, err: error }, 'a circuit without a client was not ended')
    }
  }
}

const nobody: CircuitApplication = {
  deliver: () => true,
  onFinished: () => undefined,
  onWritable: () => undefined,
  onClosed: () => undefined,
}

function connectedMessage(
  { message, id }: Asked,
  made: MadeCircuit,
  more: readonly (readonly [number, Uint8Array])[],
) {
  const isAsked = readFlag(message.headers, edgeHeaderKey.routerProvidedConnId)
  return connectionMessage(edgeContentType.stateConnected, id, [
    ...connectResponseHeaders(made.peerData),
    [edgeHeaderKey.circuitId, encodeText(made.id)],
    ...(isAsked ? [[edgeHeaderKey.routerProvidedConnId, encodeFlag(true)] as const] : []),
    ...more,
  ])
}
