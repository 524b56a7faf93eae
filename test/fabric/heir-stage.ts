import { fromBinary } from '@bufbuild/protobuf'

import { type Route, RouteSchema, UnrouteSchema } from '../../proto/gen/router_pb.ts'
import { encodeText } from '../../src/channel/headers.ts'
import { CircuitHandler } from '../../src/fabric/circuits/circuit-handler.ts'
import { encodeCircuit } from '../../src/fabric/circuits/circuit-codec.ts'
import { type Circuit, createCircuitTable } from '../../src/fabric/circuits/circuit-table.ts'
import type { ServiceHost } from '../../src/fabric/circuits/host-lookup.ts'
import { SharedCircuits } from '../../src/fabric/circuits/shared-circuits.ts'
import { createLinkHandler, closeLinkMessage } from '../../src/fabric/links/link-handler.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import type { ClientAccessDecision } from '../../src/ports/router-clients.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { LocalTopic } from '../api/support/local-topic.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { RouterStage, upToDate } from './stage.ts'
import { Tunnels } from './tunnels.ts'

const quiet = { info: () => undefined, warn: () => undefined }

/**
 * The controller `ctrl1` with routers that are connected by pipes; a test publishes in place of
 * `ctrl0` and `ctrl2`.
 */
export class HeirStage {
  readonly routers: RouterStage
  readonly topic = new LocalTopic<Uint8Array>('ctrl1')
  readonly tunnels = new Tunnels()
  readonly endedSessions = new Set<string>()
  readonly controllers = new Set(['ctrl0', 'ctrl1', 'ctrl2'])
  readonly circuits
  readonly links: LinkTable
  readonly handler: CircuitHandler
  isInQuorum = true
  /** Terminators of every service, with their routers. */
  hosted: readonly (readonly [terminatorId: string, routerId: string])[] = []
  /** Result of the access check for every client that dials. */
  judged: ClientAccessDecision = { ok: false, fault: 'access' }
  nowMs = 1_000_000

  /** @param channelClock the clock of the router channels. */
  constructor(channelClock?: Clock) {
    this.routers = new RouterStage(undefined, channelClock)
    const { channels } = this.routers
    const connection = channels.connection.bind(channels)
    const clock = { nowMs: () => this.nowMs, monotonicMs: () => this.nowMs }
    this.circuits = createCircuitTable('ctrl1', (id, message) =>
      connection(id)?.channel.send(message),
    )
    this.links = new LinkTable({
      owner: 'ctrl1',
      isBarred: () => false,
      isConnected: (id) => connection(id) !== undefined,
      sendGone: (id, link) => connection(id)?.channel.send(closeLinkMessage(link)),
      onGone: (link) => this.handler.upkeep.onLinkGone(link),
    })
    this.handler = new CircuitHandler({
      connection,
      clock,
      reads: upToDate,
      table: this.circuits,
      links: this.links,
      log: quiet,
      draw: () => 0,
      tunnels: this.tunnels,
      clients: { judge: () => Promise.resolve(this.judged) },
      hosts: {
        service: () => ({
          encryptionRequired: false,
          maxIdleTimeMs: 60_000,
          strategy: 'smartrouting',
          hosts: this.hosted.map(([terminatorId, routerId]) => hostAt(terminatorId, routerId)),
        }),
        routerCost: () => 10,
        isEndOnly: () => false,
      },
      shared: new SharedCircuits({
        clock,
        selfId: 'ctrl1',
        topic: this.topic,
        table: this.circuits,
        controllers: () => this.controllers,
        isInQuorum: () => this.isInQuorum,
        isSessionOver: (id) => this.endedSessions.has(id),
        log: quiet,
      }),
    })
    channels.add(this.handler)
    channels.add(
      createLinkHandler({
        table: this.links,
        log: quiet,
        isCertificateOf: () => false,
        onOtherFault: (from, fault) => this.handler.upkeep.onFault(from, fault),
        onLinksReported: (from, ids) => this.handler.upkeep.onLinksReported(from, ids),
      }),
    )
  }

  /** Simulates that another controller is the owner of the circuit and publishes it. */
  told(owner: string, id: string, more: Partial<Circuit> = {}): void {
    this.topic.hear(owner, id, encodeCircuit(circuitOf(id, more)))
  }

  /** Simulates that the controller has failed and withdrawn nothing. */
  async lose(owner: string): Promise<void> {
    this.controllers.delete(owner)
    this.topic.lose(owner)
    await this.sweep()
  }

  async sweep(): Promise<void> {
    this.routers.channels.sweep()
    await settle()
  }

  linked(id: string, from: string, to: string): void {
    const link = { id, destRouterId: to, protocol: 'tls', dialAddress: '', iteration: 1 }
    this.links.report(from, { ...link, connections: [] })
    this.links.onAllReported(from)
  }
}

function hostAt(terminatorId: string, routerId: string): ServiceHost {
  return {
    terminatorId,
    routerId,
    hostId: 'i2',
    isMadeByRouter: false,
    binding: 'edge',
    address: `at ${terminatorId}`,
    cost: 0,
    precedence: 'default',
    instanceId: '',
    peerData: new Map(),
  }
}

/** A circuit from `er1` over the link `l1` to `er2`, unless `more` changes this. */
export function circuitOf(id: string, more: Partial<Circuit> = {}): Circuit {
  return {
    live: {
      clientId: 'i1',
      sessionId: 'dial',
      serviceId: 's1',
      terminatorId: 't1',
      createdAt: 1_700_000_000_000,
    },
    ends: { id, ingress: `ingress of ${id}`, egress: `egress of ${id}` },
    hostId: 'i2',
    instanceId: '',
    isOfTunnel: false,
    isHostedByTunnel: false,
    turn: 0,
    path: {
      routerIds: ['er1', 'er2'],
      links: [{ id: 'l1', iteration: 1, sourceRouterId: 'er2', destRouterId: 'er1' }],
      cost: 11,
    },
    ...more,
  }
}

/**
 * Simulates a router's request for a circuit by service, with a circuit ID of the router, or ''.
 */
export async function askByService(pipe: Pipe, id: string): Promise<void> {
  const headers = new Map([
    [14, encodeText('access token')],
    [15, encodeText('i1')],
    [16, encodeText('s1')],
    [17, encodeText(id)],
  ])
  pipe.say({ contentType: 20_222, sequence: 52, headers })
  await settle()
}

export function routes(pipe: Pipe): Route[] {
  return pipe.ofType(1005).map(({ body }) => fromBinary(RouteSchema, body))
}

/** The unroute messages that a router has received, each as `circuit now`. */
export function unroutes(pipe: Pipe): string[] {
  return pipe.ofType(1006).map(({ body }) => {
    const { circuitId, now } = fromBinary(UnrouteSchema, body)
    return now ? `${circuitId} now` : circuitId
  })
}
