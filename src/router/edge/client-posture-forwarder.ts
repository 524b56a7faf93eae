import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type PostureResponse,
  PostureResponseSchema,
  PostureResponsesSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { readFlag } from '../../channel/headers.ts'
import { channelHeaderKey } from '../../channel/numbers.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { edgeLimits } from './limits.ts'
import type { RateLimitedWarningLog } from '../../overlay/sockets/rate-limited-warning-log.ts'
import { BearerSessions } from './bearer-sessions.ts'
import type { ClientChannel } from './client-channel.ts'
import { clientPostureMessage } from '../../channel/messages/clients.ts'

const { clientPostureBytesMax, clientPosturesBytesMax } = edgeLimits
const { clientPosturesWaitingMax, clientPostureMs } = edgeLimits

/** Posture reports that one client has sent. */
interface SentPosture {
  /** The latest report of each kind; for processes, of each path. */
  known: ReadonlyMap<string, PostureResponse>
  knownBytes: number
  /** Number of reports to which at least one controller has not responded yet. */
  waiting: number
  /**
   * For each controller ID, a promise that resolves when the controller has answered all reports so
   * far, or their timeouts have expired.
   */
  readonly settled: Map<string, Promise<void>>
}

export interface ClientPostureForwarderDeps {
  readonly connections: () => readonly ControlConnection[]
  readonly failures: RateLimitedWarningLog
}

/**
 * Forwards posture reports of OIDC clients to all controllers. Each controller evaluates every
 * report itself, because any controller may authorize the client's requests and may be the only one
 * that is left.
 */
export class ClientPostureForwarder {
  readonly #deps: ClientPostureForwarderDeps
  readonly #sent = new Map<ClientChannel, SentPosture>()
  #bytes = 0

  constructor(deps: ClientPostureForwarderDeps) {
    this.#deps = deps
  }

  take(client: ClientChannel, { body }: ChannelMessage): void {
    // Forwards only reports of OIDC clients: clients with other sessions send their posture to
    // controllers directly.
    if (!BearerSessions.isMeant(client.client.session.token)) return
    const sent = this.#sent.get(client) ?? {
      known: new Map<string, PostureResponse>(),
      knownBytes: 0,
      waiting: 0,
      settled: new Map<string, Promise<void>>(),
    }
    this.#sent.set(client, sent)
    const { kept, moments } = sorted(fromBinary(PostureResponsesSchema, body).responses)
    const known = new Map([...sent.known, ...kept])
    const bytes = bytesOf([...known.values()])
    if (bytes > clientPostureBytesMax || sent.waiting >= clientPosturesWaitingMax) {
      client.channel.close('the client reports too much on its device')
      return
    }
    this.#keep(sent, known, bytes)
    void this.#sendAll(client, sent, [...known.values(), ...moments])
  }

  /**
   * Resolves when the controller has answered all earlier reports of the client, or their timeouts
   * have expired.
   */
  async settled(client: ClientChannel, controllerId: string): Promise<void> {
    await this.#sent.get(client)?.settled.get(controllerId)
  }

  onClientClosed(client: ClientChannel): void {
    this.#bytes -= this.#sent.get(client)?.knownBytes ?? 0
    this.#sent.delete(client)
  }

  /** Sends all stored reports, because a restarted controller has lost the earlier ones. */
  onControllerConnected(connection: ControlConnection): void {
    for (const [client, sent] of this.#sent) {
      void this.#send(connection, client, sent, [...sent.known.values()])
    }
  }

  onControllerClosed({ id }: ControlConnection): void {
    for (const { settled } of this.#sent.values()) settled.delete(id)
  }

  /**
   * Stores the reports, for controllers that connect later. If the limit of all clients is reached,
   * no reports of this client are stored, not even its earlier ones.
   */
  #keep(sent: SentPosture, known: ReadonlyMap<string, PostureResponse>, bytes: number): void {
    const isRoom = this.#bytes - sent.knownBytes + bytes <= clientPosturesBytesMax
    this.#bytes += (isRoom ? bytes : 0) - sent.knownBytes
    sent.known = isRoom ? known : new Map()
    sent.knownBytes = isRoom ? bytes : 0
  }

  async #sendAll(
    client: ClientChannel,
    sent: SentPosture,
    responses: readonly PostureResponse[],
  ): Promise<void> {
    sent.waiting += 1
    const sendings = this.#deps
      .connections()
      .map((connection) => this.#send(connection, client, sent, responses))
    await Promise.all(sendings)
    sent.waiting -= 1
  }

  /** Sends reports after all earlier ones to the same controller. */
  #send(
    connection: ControlConnection,
    client: ClientChannel,
    { settled }: SentPosture,
    responses: readonly PostureResponse[],
  ): Promise<void> {
    const { id } = connection
    const before = settled.get(id) ?? Promise.resolve()
    const now = before.then(() => this.#request(connection, client, responses))
    settled.set(id, now)
    return now
  }

  async #request(
    { channel, id: controllerId }: ControlConnection,
    client: ClientChannel,
    responses: readonly PostureResponse[],
  ): Promise<void> {
    if (client.channel.isClosed || channel.isClosed || responses.length === 0) return
    try {
      const claim = client.claimOf({ token: '', id: null })
      const request = clientPostureMessage(claim, responses)
      const { headers, body } = await channel.request(request, clientPostureMs)
      if (readFlag(headers, channelHeaderKey.resultSuccess)) return
      const reason = Buffer.from(body).toString('utf8').slice(0, REASON_CHARACTERS_MAX)
      this.#warn(client, controllerId, reason)
    } catch (error) {
      if (!channel.isClosed) this.#warn(client, controllerId, errorMessage(error))
    }
  }

  #warn({ client }: ClientChannel, controllerId: string, reason: string): void {
    const { identityId } = client.session
    const text = 'a controller has not taken the report of a client on its device'
    this.#deps.failures.warnOf(identityId, text, { identityId, controllerId, reason })
  }
}

const REASON_CHARACTERS_MAX = 200

/**
 * Separates reports that are valid until the next report of the same kind from reports of a
 * momentary event.
 */
function sorted(responses: readonly PostureResponse[]): {
  readonly kept: ReadonlyMap<string, PostureResponse>
  readonly moments: readonly PostureResponse[]
} {
  const kept = new Map<string, PostureResponse>()
  const moments: PostureResponse[] = []
  for (const response of responses) {
    const { type } = response
    if (type.case === 'woken' || type.case === 'unlocked') moments.push(response)
    else if (type.case === 'processList') {
      for (const process of type.value.processes) {
        const type = { case: 'processList' as const, value: { processes: [process] } }
        kept.set(`process ${process.path}`, create(PostureResponseSchema, { type }))
      }
    } else if (type.case !== undefined) kept.set(type.case, response)
  }
  return { kept, moments }
}

function bytesOf(responses: readonly PostureResponse[]): number {
  return toBinary(
    PostureResponsesSchema,
    create(PostureResponsesSchema, { responses: [...responses] }),
  ).length
}
