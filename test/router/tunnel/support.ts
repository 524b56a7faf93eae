import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { createSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'

import {
  CreateCircuitAnswerSchema,
  CreateTerminatorResult,
  type CreateTunnelCircuit,
  CreateTunnelCircuitSchema,
  type CreateTunnelTerminator,
  CreateTunnelTerminatorAnswerSchema,
  CreateTunnelTerminatorSchema,
  DestinationType,
  RemoveTerminatorsSchema,
  RouteSchema,
  type UpdateTunnelTerminator,
  UpdateTunnelTerminatorSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../../src/channel/frame.ts'
import { readText, encodeText } from '../../../src/channel/headers.ts'
import type { ModelEvent } from '../../../src/ports/router-model.ts'
import { readSubscribeRequest } from '../../../src/channel/messages/model.ts'
import { changesBody, wholeBody } from '../model/support.ts'
import { eventually, type ScriptedController, TestNetwork } from '../support.ts'

const terminatorHeader = { reason: 1103, code: 1104, success: 1102 } as const

/** The result of a route request, as the router reports it. */
export interface Dialed {
  readonly isSuccess: boolean
  readonly reason: string
  readonly code: number
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

/**
 * The controller of one router with a tunnel: it has the data model of the test, creates
 * terminators, and routes circuits from the router to the same router.
 */
export class TunnelController {
  readonly scripted: ScriptedController
  readonly terminators = new Map<string, CreateTunnelTerminator>()
  readonly updates: UpdateTunnelTerminator[] = []
  readonly asked: CreateTunnelCircuit[] = []
  /** If false, the controller does not answer requests for circuits. */
  makesCircuits = true
  /** If true, requests for a terminator wait until `answerHeld`. */
  holdsCreations = false
  readonly held: ChannelMessage[] = []
  /** Refusals with which the controller answers the next requests for a terminator. */
  readonly refusals: CreateTerminatorResult[] = []
  #index = 1
  #circuits = 0
  #subscription = ''
  #events: readonly ModelEvent[]
  readonly #results = new Map<string, (message: ChannelMessage) => void>()

  constructor(scripted: ScriptedController, events: readonly ModelEvent[]) {
    this.scripted = scripted
    this.#events = events
    scripted.onReceived = (message) => this.#onMessage(message)
  }

  /** Applies and sends the changes of an entry. */
  change(events: readonly ModelEvent[]): void {
    this.#index += 1
    const body = changesBody(events, this.#index, this.#index - 1)
    const headers = new Map([[1026, encodeText(this.#subscription)]])
    this.scripted.send({ contentType: 20_501, headers, body })
  }

  /** The terminator of a service, as soon as the router has requested it. */
  async terminator(serviceId: string): Promise<CreateTunnelTerminator> {
    const found = () => [...this.terminators.values()].find((one) => one.serviceId === serviceId)
    await eventually(() => found() !== undefined).toBe(true)
    const made = found()
    if (made === undefined) throw new Error('it is gone again')
    return made
  }

  /** Makes the router connect a circuit to a terminator. */
  async dial(
    destination: string,
    peerData: Readonly<Record<number, Uint8Array>> = {},
    circuitId = `c${(this.#circuits += 1)}`,
  ): Promise<Dialed> {
    const [from, to] = [`${circuitId}-in`, `${circuitId}-out`]
    const route = create(RouteSchema, {
      circuitId,
      egress: { binding: 'tunnel', address: to, destination, peerData },
      forwards: [
        { srcAddress: from, dstAddress: to, dstType: DestinationType.END },
        { srcAddress: to, dstAddress: from, dstType: DestinationType.START },
      ],
      timeout: 10_000_000_000n,
    })
    const { promise, resolve } = Promise.withResolvers<ChannelMessage>()
    this.#results.set(circuitId, resolve)
    this.scripted.send({ contentType: 1005, body: toBinary(RouteSchema, route) })
    const { headers } = await promise
    const others = [...headers].filter(([key]) => key > 13 && !(key >= 1101 && key <= 1104))
    return {
      isSuccess: headers.has(terminatorHeader.success),
      reason: readText(headers, terminatorHeader.reason) ?? '',
      code: headers.get(terminatorHeader.code)?.[0] ?? 0,
      peerData: new Map(others),
    }
  }

  #onMessage(message: ChannelMessage): void {
    const { contentType, body } = message
    const { channel } = this.scripted
    if (contentType === 20_505) void this.#onSubscribe(body)
    if (contentType === 20_413 && this.holdsCreations) this.held.push(message)
    else if (contentType === 20_413) this.#onCreate(message)
    if (contentType === 20_220 && this.makesCircuits) void this.#onCircuit(message)
    if (contentType === 20_408) {
      this.updates.push(fromBinary(UpdateTunnelTerminatorSchema, body))
      channel?.reply(message, { contentType: 20_409 })
    }
    if (contentType === 1038) {
      const { terminatorIds } = fromBinary(RemoveTerminatorsSchema, body)
      for (const id of terminatorIds) this.terminators.delete(id)
      channel?.replyResult(message, true)
    }
    if (contentType === 1022) {
      this.#results.get(Buffer.from(body).toString('utf8'))?.(message)
    }
  }

  async #onSubscribe(asked: Uint8Array): Promise<void> {
    const { subscriptionId, renews } = readSubscribeRequest(asked)
    if (renews) return
    this.#subscription = subscriptionId
    const headers = new Map([[1026, encodeText(subscriptionId)]])
    const body = await wholeBody(this.#events, this.#index)
    this.scripted.send({ contentType: 20_500, headers, body })
  }

  answerHeld(): void {
    for (const message of this.held.splice(0)) this.#onCreate(message)
  }

  #onCreate(message: ChannelMessage): void {
    const made = fromBinary(CreateTunnelTerminatorSchema, message.body)
    const result = this.refusals.shift() ?? CreateTerminatorResult.SUCCESS
    if (result === CreateTerminatorResult.SUCCESS) this.terminators.set(made.address, made)
    const answer = create(CreateTunnelTerminatorAnswerSchema, {
      terminatorId: made.address,
      startTime: made.startTime,
      result,
      msg: 'as the test says',
    })
    this.scripted.channel?.reply(message, {
      contentType: 20_414,
      body: toBinary(CreateTunnelTerminatorAnswerSchema, answer),
    })
  }

  /** Routes a circuit to the terminator of the service at the same router. */
  async #onCircuit(message: ChannelMessage): Promise<void> {
    const asked = fromBinary(CreateTunnelCircuitSchema, message.body)
    this.asked.push(asked)
    const { serviceName, peerData } = asked
    const serviceId = serviceName.replace('name of ', '')
    const circuitId = `c${(this.#circuits += 1)}`
    const made = [...this.terminators.values()].find((one) => one.serviceId === serviceId)
    const dialed = await this.dial(made?.address ?? 'none', peerData, circuitId)
    const { channel } = this.scripted
    if (!dialed.isSuccess) {
      channel?.reply(message, { contentType: 20_002, body: encodeText(dialed.reason) })
      return
    }
    const answer = create(CreateCircuitAnswerSchema, {
      circuitId,
      address: `${circuitId}-in`,
      peerData: Object.fromEntries(dialed.peerData),
    })
    channel?.reply(message, {
      contentType: 20_221,
      body: toBinary(CreateCircuitAnswerSchema, answer),
    })
  }
}

export const identity = (more: object = {}): ModelEvent => ({
  kind: 'identity',
  action: 'create',
  value: {
    id: 'router1',
    name: 'name of router1',
    defaultHostingPrecedence: 'default',
    defaultHostingCost: 0,
    serviceHostingPrecedences: {},
    serviceHostingCosts: {},
    disabledAt: null,
    disabledUntil: null,
    appDataJson: '{"place":"berlin"}',
    serviceConfigs: {},
    ...more,
  },
})

export const policy = (type: 'Dial' | 'Bind'): readonly ModelEvent[] => [
  { kind: 'servicePolicy', action: 'create', value: { id: type, name: type, type } },
  { kind: 'members', policyId: type, of: 'identity', ids: ['router1'], isAdded: true },
]

export const member = (type: 'Dial' | 'Bind', id: string, isAdded = true): ModelEvent => ({
  kind: 'members',
  policyId: type,
  of: 'service',
  ids: [id],
  isAdded,
})

/** A service with a config that the identity of the router may host or dial. */
export function serviceOf(
  id: string,
  configs: Readonly<Record<string, unknown>>,
  types: readonly ('Dial' | 'Bind')[] = ['Bind'],
  isEncrypted = false,
): readonly ModelEvent[] {
  const made = Object.entries(configs).flatMap(([type, data]): ModelEvent[] => [
    { kind: 'configType', action: 'create', value: { id: type, name: type, target: '' } },
    configOf(id, type, data),
  ])
  const service: ModelEvent = {
    kind: 'service',
    action: 'create',
    value: {
      id,
      name: `name of ${id}`,
      encryptionRequired: isEncrypted,
      configs: Object.keys(configs).map((type) => `${id}-${type}`),
    },
  }
  return [...made, service, ...types.map((type) => member(type, id))]
}

export const configOf = (id: string, type: string, data: unknown): ModelEvent => ({
  kind: 'config',
  action: 'create',
  value: { id: `${id}-${type}`, typeId: type, name: id, dataJson: JSON.stringify(data) },
})

export const basis: readonly ModelEvent[] = [identity(), ...policy('Bind'), ...policy('Dial')]

/** A router with a tunnel, its controller, and the target servers of its services. */
export class TunnelStage {
  readonly network: TestNetwork
  readonly controller: TunnelController
  readonly #closing: (() => void)[] = []

  private constructor(network: TestNetwork, controller: TunnelController) {
    this.network = network
    this.controller = controller
  }

  static async create(
    events: readonly ModelEvent[],
    options = '{mode: host}',
    sections = '',
    prepare: (controller: TunnelController) => void = () => undefined,
  ): Promise<TunnelStage> {
    const network = await TestNetwork.create()
    const controller = new TunnelController(await network.controller('a'), [...basis, ...events])
    prepare(controller)
    await network.running(
      [controller.scripted.address],
      `listeners: [{binding: tunnel, options: ${options}}]\n${sections}\n`,
    )
    return new TunnelStage(network, controller)
  }

  async close(): Promise<void> {
    await this.network.close()
    for (const close of this.#closing) close()
  }
}

/** A TCP server that sends back the bytes that it receives. */
export async function echoServer(): Promise<{
  readonly port: number
  readonly sockets: readonly Socket[]
  readonly close: () => void
}> {
  const sockets: Socket[] = []
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.pipe(socket)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const close = (): void => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return { port, sockets, close }
}

/** A UDP server that sends each datagram back. */
export async function echoDatagrams(): Promise<{
  readonly port: number
  readonly close: () => void
}> {
  const socket = createSocket('udp4')
  socket.on('message', (body, { port, address }) => socket.send(body, port, address))
  await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done))
  return { port: socket.address().port, close: () => socket.close() }
}
