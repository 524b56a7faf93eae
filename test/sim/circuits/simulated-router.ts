import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { openDialedChannel } from '../../../src/channel/dial.ts'
import type { ChannelMessage } from '../../../src/channel/frame.ts'
import { channelLimits, type ChannelLimits } from '../../../src/channel/limits.ts'
import { parseRouterConfig } from '../../../src/config/router/load.ts'
import type { RouterConfig } from '../../../src/config/router/table.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import { combineMessageTables } from '../../../src/router/controllers/combine-message-tables.ts'
import { ControllerManager } from '../../../src/router/controllers/controller-manager.ts'
import {
  AlreadyConnectedError,
  type DialedController,
} from '../../../src/router/controllers/dial-controller.ts'
import { routerHelloMessage } from '../../../src/channel/messages/control.ts'
import { DialFailure, type DialRequest } from '../../../src/overlay/circuits/circuit-endpoint.ts'
import { Forwarder } from '../../../src/router/forward/forwarder.ts'
import { xgressOptions } from '../../../src/overlay/circuits/xgress-options.ts'
import { encodeLinkListeners } from '../../../src/channel/messages/links.ts'
import { CircuitRequester } from '../../../src/router/listen/circuit-requester.ts'
import { Context, type VirtualLoop } from '../virtual-loop.ts'
import type { RouterPlan } from './circuit-plan.ts'
import type { Frames } from './frames.ts'
import { SimulatedLinks } from './simulated-links.ts'
import type { Party, SimulatedSocket } from './simulated-socket.ts'
import { type Habits, type Stream, StreamEnd, type StreamWorld } from './streams.ts'
import { dialErrorCodes } from '../../../src/channel/messages/dial-error.ts'

/** Binding of the terminators that a simulated router hosts. */
export const BINDING = 'simulated'

export interface RouterWorld extends StreamWorld {
  readonly loop: VirtualLoop
  readonly frames: Frames
  readonly plan: RouterPlan
  clockOf(routerId: string): Clock
  /**
   * Connects to that router. Returns one end of the connection; nothing arrives on it while the
   * path is cut.
   */
  connectTo(from: Party, name: string): SimulatedSocket
  controllerIds(): readonly string[]
  /** SHA-256 of the public key of a controller, hex. */
  controllerKey(id: string): string
  streamOf(circuitId: string): Stream
  /** Called for each message between a router and a controller. */
  onFrame(
    routerId: string,
    controllerId: string,
    direction: 'in' | 'out',
    message: ChannelMessage,
  ): void
  onLink(routerId: string, peerId: string, event: 'up' | 'down'): void
  habitsOf(side: StreamEnd['side']): Habits
}

interface RouterLife {
  readonly party: Party
  readonly forwarder: Forwarder
  readonly controllers: ControllerManager
  readonly links: SimulatedLinks
  readonly requests: CircuitRequester
}

const nothing = (): void => undefined
const SILENT = { info: nothing, warn: nothing, error: nothing }
const version = { version: 'v2.0.0', revision: 'r', buildDate: 'd', os: 'linux', arch: 'x64' }
const REQUEST_MS_MAX = 8_000

/**
 * A running router with production controllers, forwarder, routes, circuit endpoints and link
 * registry. Sockets and circuit users are simulated.
 */
export class SimulatedRouter {
  readonly id: string
  readonly peerIds: ReadonlySet<string>
  readonly ends = new Set<StreamEnd>()
  life: RouterLife | null = null
  /** Number of circuits for which the router's clients wait. */
  asked = 0
  readonly #world: RouterWorld
  readonly #config: RouterConfig

  constructor(world: RouterWorld, id: string, peerIds: ReadonlySet<string>) {
    this.#world = world
    this.id = id
    this.peerIds = peerIds
    this.#config = configOf(world.plan, world.controllerIds())
  }

  start(): void {
    const context = new Context(this.id)
    this.#world.loop.within(context, () => this.#start(context))
  }

  /** Ends the process with all of its sockets. */
  stop(): void {
    if (this.life === null) return
    this.life.party.context.isOver = true
    this.life = null
    this.asked = 0
    for (const end of this.ends) end.isLost = true
    this.ends.clear()
  }

  pause(untilMs: number): void {
    if (this.life !== null) this.life.party.context.pausedUntilMs = untilMs
  }

  acceptLink(socket: SimulatedSocket): void {
    this.life?.links.accept(socket)
  }

  /** IDs of the circuits that the router carries. */
  get carried(): readonly string[] {
    return Object.keys(this.life?.forwarder.shown().circuits ?? {})
  }

  /** Dials a service as one of the router's clients. */
  dial(serviceId: string): void {
    const { life } = this
    if (life === null) return
    this.#world.loop.within(life.party.context, () => {
      void this.#dial(life, serviceId)
    })
  }

  /** Closes all circuits of the router, as their users would. */
  closeAll(): void {
    const { life } = this
    if (life === null) return
    this.#world.loop.within(life.party.context, () => {
      for (const end of this.ends) end.close()
    })
  }

  #start(context: Context): void {
    const world = this.#world
    const { id, peerIds } = this
    const party = { name: id, context }
    const clock = world.clockOf(id)
    const config = this.#config
    const random = world.chance
    const connections = () => controllers.connections
    const forwarder = new Forwarder({
      routerId: id,
      config: config.forwarder,
      clock,
      log: SILENT,
      connections,
    })
    forwarder.registerDialer(BINDING, {
      dial: (request, signal) => this.#onDialed(forwarder, request, signal),
    })
    if (config.link === null) throw new Error('the configuration has links')
    const links = new SimulatedLinks({
      routerId: id,
      peerIds,
      config: config.link,
      dialing: config.forwarder,
      clock,
      random,
      log: SILENT,
      connections,
      forwarder,
      frames: world.frames,
      onLink: (peerId, event) => world.onLink(id, peerId, event),
      connect: (peerId) => world.connectTo(party, peerId),
    })
    const messages = combineMessageTables([links.messages(), forwarder.messages()])
    const controllers: ControllerManager = new ControllerManager({
      // The folder does not exist, so a restarted router knows only the controllers of its
      // configuration.
      endpointsFile: join(tmpdir(), 'flotilla-simulated', 'nowhere', 'endpoints.yml'),
      configuredEndpoints: world.controllerIds().map(addressOf),
      dial: (address, handlers) => this.#dialController(controllers, party, address, handlers),
      clock,
      random,
      log: SILENT,
      onApis: nothing,
      handlers: {
        onConnected: (connection) => {
          links.reportAll(connection)
          forwarder.onConnected(connection)
        },
        onMessage: (connection, message) => {
          messages.get(message.contentType)?.(connection, message)
        },
        onClosed: nothing,
      },
    })
    const requests = new CircuitRequester({ connections, clock })
    this.life = { party, forwarder, controllers, links, requests }
    forwarder.start()
    controllers.start()
  }

  async #dialController(
    controllers: ControllerManager,
    party: Party,
    address: string,
    handlers: Parameters<ConstructorParameters<typeof ControllerManager>[0]['dial']>[1],
  ): Promise<DialedController> {
    const world = this.#world
    const id = world.controllerIds().find((one) => addressOf(one) === address)
    if (id === undefined) throw new Error('nobody is there')
    if (!controllers.reserve(id)) throw new AlreadyConnectedError(id)
    try {
      return await this.#greetController(party, id, address, handlers)
    } finally {
      controllers.release(id)
    }
  }

  async #greetController(
    party: Party,
    id: string,
    address: string,
    handlers: Parameters<ConstructorParameters<typeof ControllerManager>[0]['dial']>[1],
  ): Promise<DialedController> {
    const world = this.#world
    const clock = world.clockOf(this.id)
    const listeners = encodeLinkListeners([{ address: `tls:${this.id}:6000`, groups: [] }])
    const { channel } = await openDialedChannel(world.connectTo(party, id).asSocket, {
      ...handlers,
      clock,
      hello: routerHelloMessage(this.id, version, listeners),
      limits: controlLimits(this.#config),
      timeoutMs: this.#config.ctrl.options.connectTimeoutMs,
      onFrame: (direction, message) => world.onFrame(this.id, id, direction, message),
    })
    const connectedAtMs = clock.nowMs()
    const trustDomain = 'test.flotilla'
    const keySha256 = world.controllerKey(id)
    return { id, address, keySha256, channel, connectedAtMs, version: 'v2.0.0', trustDomain }
  }

  async #dial({ requests, forwarder }: RouterLife, serviceId: string): Promise<void> {
    const world = this.#world
    const options = xgressOptions(world.plan.xgress)
    this.asked += 1
    try {
      const circuit = await requests.request(serviceId, 'client', REQUEST_MS_MAX)
      const end = this.#newEnd(circuit.id, 'client')
      end.begin(forwarder.open({ ...circuit, options }, end))
    } catch {
      world.tally.note('circuit refused')
    } finally {
      this.asked -= 1
    }
  }

  async #onDialed(
    forwarder: Forwarder,
    { circuit }: DialRequest,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Uint8Array>> {
    const world = this.#world
    const { hostMsMax, hostRefusesChance } = world.plan
    await new Promise((resolve) => setTimeout(resolve, world.chance.integer(0, hostMsMax)))
    signal.throwIfAborted()
    if (!world.frames.isHealed && world.chance.next() < hostRefusesChance) {
      throw new DialFailure(dialErrorCodes.refused, 'the host refuses')
    }
    const end = this.#newEnd(circuit.id, 'host')
    const options = xgressOptions(world.plan.xgress)
    end.begin(forwarder.open({ ...circuit, options }, end))
    return new Map()
  }

  #newEnd(circuitId: string, side: StreamEnd['side']): StreamEnd {
    const world = this.#world
    const end = new StreamEnd(world, world.streamOf(circuitId), {
      side,
      routerId: this.id,
      habits: world.habitsOf(side),
    })
    this.ends.add(end)
    return end
  }
}

export function addressOf(controllerId: string): string {
  return `tls:${controllerId}:6262`
}

function configOf({ forwarder, link }: RouterPlan, controllerIds: readonly string[]): RouterConfig {
  const text = JSON.stringify({
    v: 3,
    identity: { cert: 'c', key: 'k', server_cert: 's' },
    ctrl: {
      endpoints: controllerIds.map(addressOf),
      heartbeats: { sendInterval: '1s', closeUnresponsiveTimeout: '4s' },
    },
    forwarder,
    link: {
      dialers: [
        {
          binding: 'transport',
          healthyDialBackoff: { minRetryInterval: '200ms', maxRetryInterval: '2s' },
          unhealthyDialBackoff: { minRetryInterval: '200ms', maxRetryInterval: '2s' },
        },
      ],
      heartbeats: { sendInterval: '1s', closeUnresponsiveTimeout: '3s' },
      ...link,
    },
  })
  const loaded = parseRouterConfig('/nowhere/router.yml', text, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
  return loaded.config
}

function controlLimits({ ctrl }: RouterConfig): ChannelLimits {
  const { sendInterval, closeUnresponsiveTimeout } = ctrl.heartbeats
  return {
    ...channelLimits,
    heartbeatEveryMs: sendInterval,
    silentMsMax: closeUnresponsiveTimeout,
    firstSilentMsMax: sendInterval + closeUnresponsiveTimeout,
  }
}
