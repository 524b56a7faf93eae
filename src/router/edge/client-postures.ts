import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type PostureResponse,
  PostureResponseSchema,
  PostureResponsesSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { readFlag } from '../../channel/headers.ts'
import { headerKey } from '../../channel/numbers.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { edgeLimits } from './limits.ts'
import type { FailureLog } from '../../overlay/sockets/failure-log.ts'
import { BearerSessions } from './bearer-sessions.ts'
import type { ClientChannel } from './client-channel.ts'
import { clientPostureMessage } from '../../channel/messages/clients.ts'

const { clientPostureBytesMax, clientPosturesBytesMax } = edgeLimits
const { clientPosturesWaitingMax, clientPostureMs } = edgeLimits

/** The reports of one client. */
interface Told {
  /** The last word on each thing, by what it is about. */
  known: ReadonlyMap<string, PostureResponse>
  knownBytes: number
  /** Messages that some controller has not answered. */
  waiting: number
  /** Resolve when the controller has all reports so far, or was waited for long enough. */
  readonly settled: Map<string, Promise<void>>
}

export interface ClientPosturesParts {
  readonly connections: () => readonly ControlConnection[]
  readonly failures: FailureLog
}

/**
 * Passes reports of clients of OIDC on their devices on to the controllers, which judge by them.
 * Each controller gets all of them, as each may be asked to judge what the client wants, and may be
 * the one that is left.
 */
export class ClientPostures {
  readonly #parts: ClientPosturesParts
  readonly #told = new Map<ClientChannel, Told>()
  #bytes = 0

  constructor(parts: ClientPosturesParts) {
    this.#parts = parts
  }

  take(client: ClientChannel, { body }: ChannelMessage): void {
    // The device of another client tells controllers, whatever it tells routers.
    if (!BearerSessions.isMeant(client.client.session.token)) return
    const told = this.#told.get(client) ?? {
      known: new Map<string, PostureResponse>(),
      knownBytes: 0,
      waiting: 0,
      settled: new Map<string, Promise<void>>(),
    }
    this.#told.set(client, told)
    const { kept, moments } = sorted(fromBinary(PostureResponsesSchema, body).responses)
    const known = new Map([...told.known, ...kept])
    const bytes = bytesOf([...known.values()])
    if (bytes > clientPostureBytesMax || told.waiting >= clientPosturesWaitingMax) {
      client.channel.close('the client reports too much on its device')
      return
    }
    this.#keep(told, known, bytes)
    void this.#tellAll(client, told, [...known.values(), ...moments])
  }

  /** Resolves when the controller has all that the client has reported before. */
  async settled(client: ClientChannel, controllerId: string): Promise<void> {
    await this.#told.get(client)?.settled.get(controllerId)
  }

  onClientClosed(client: ClientChannel): void {
    this.#bytes -= this.#told.get(client)?.knownBytes ?? 0
    this.#told.delete(client)
  }

  /** It may have lost what it was told with its process. */
  onControllerConnected(connection: ControlConnection): void {
    for (const [client, told] of this.#told) {
      void this.#tell(connection, client, told, [...told.known.values()])
    }
  }

  onControllerClosed({ id }: ControlConnection): void {
    for (const { settled } of this.#told.values()) settled.delete(id)
  }

  /** Without room it is told now, and not again to a controller that comes back. */
  #keep(told: Told, known: ReadonlyMap<string, PostureResponse>, bytes: number): void {
    const isRoom = this.#bytes - told.knownBytes + bytes <= clientPosturesBytesMax
    this.#bytes += (isRoom ? bytes : 0) - told.knownBytes
    told.known = isRoom ? known : new Map()
    told.knownBytes = isRoom ? bytes : 0
  }

  async #tellAll(
    client: ClientChannel,
    told: Told,
    responses: readonly PostureResponse[],
  ): Promise<void> {
    told.waiting += 1
    const tells = this.#parts
      .connections()
      .map((connection) => this.#tell(connection, client, told, responses))
    await Promise.all(tells)
    told.waiting -= 1
  }

  /** After what it was told before. */
  #tell(
    connection: ControlConnection,
    client: ClientChannel,
    { settled }: Told,
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
      if (readFlag(headers, headerKey.resultSuccess)) return
      const reason = Buffer.from(body).toString('utf8').slice(0, REASON_CHARACTERS_MAX)
      this.#warn(client, controllerId, reason)
    } catch (error) {
      if (!channel.isClosed) this.#warn(client, controllerId, errorMessage(error))
    }
  }

  #warn({ client }: ClientChannel, controllerId: string, reason: string): void {
    const { identityId } = client.session
    const text = 'a controller has not taken the report of a client on its device'
    this.#parts.failures.warnOf(identityId, text, { identityId, controllerId, reason })
  }
}

const REASON_CHARACTERS_MAX = 200

/** States, which last until the device reports another one, and moments, which are over. */
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
