import { LinearizableReads } from '../../../src/api/http/linearizable-reads.ts'
import { defaultApiLimits } from '../../../src/api/limits.ts'
import {
  createRouterCluster,
  listRouterControllers,
} from '../../../src/controller/service/routers.ts'
import { CircuitHandler } from '../../../src/fabric/circuits/circuit-handler.ts'
import {
  circuitEventData,
  createCircuitTable,
  type CircuitTable,
} from '../../../src/fabric/circuits/circuit-table.ts'
import { SharedCircuits } from '../../../src/fabric/circuits/shared-circuits.ts'
import type { HostLookup } from '../../../src/fabric/circuits/host-lookup.ts'
import { createLinkHandler, closeLinkMessage } from '../../../src/fabric/links/link-handler.ts'
import { LinkTable } from '../../../src/fabric/links/link-table.ts'
import { RouterPeersHandler } from '../../../src/fabric/links/router-peers-handler.ts'
import { RouterChannels } from '../../../src/fabric/router-channels.ts'
import { RouterStatusTopic } from '../../../src/fabric/router-status-topic.ts'
import { ProcessorShare } from '../../../src/lib/bounds/processor-share.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import type { Random } from '../../../src/lib/random.ts'
import type { ObservationSink } from '../../../src/ports/observations.ts'
import type { Life } from '../controller.ts'
import type { SimulatedSocket } from './simulated-socket.ts'

export interface ControllerFabricParts {
  readonly id: string
  readonly life: Life
  readonly clock: Clock
  readonly random: Random
  readonly hosts: HostLookup
  readonly routerIds: readonly string[]
  readonly publishFact: ObservationSink
}

const nothing = (): void => undefined
const SILENT = { info: nothing, warn: nothing }
const version = { version: 'v2.0.0', revision: 'r', buildDate: 'd', os: 'linux', arch: 'x64' }

/**
 * The router-facing part of a simulated controller, built from production parts as in a controller.
 * Permissions to connect and dial, and the hosts of services, are fixed.
 */
export class ControllerFabric {
  readonly channels: RouterChannels
  readonly links: LinkTable
  readonly circuits: CircuitTable

  /** Must be called in the controller's main thread, before its cluster node starts. */
  constructor({ id, life, clock, random, hosts, routerIds, publishFact }: ControllerFabricParts) {
    const { clusterNode, machine } = life
    const channels = new RouterChannels({
      clock,
      publishFact,
      log: SILENT,
      feed: machine,
      identity: { id, clusterId: clusterNode.clusterId, version },
      gate: {
        admit: (socket) => {
          const name = (socket as unknown as SimulatedSocket).peer.name
          return { ok: true, router: { id: name, name, isEdge: false, certPem: name } }
        },
        revoked: () => null,
      },
      cluster: createRouterCluster(clusterNode, () => false),
      statuses: new RouterStatusTopic(id, clusterNode.soft.open('routers'), clock),
      processor: new ProcessorShare(defaultApiLimits, clock),
    })
    this.channels = channels
    this.circuits = createCircuitTable(
      id,
      (routerId, message) => channels.connection(routerId)?.channel.send(message),
      (circuit) => publishFact(circuitEventData(circuit, 'deleted')),
    )
    this.links = new LinkTable({
      owner: id,
      isConnected: (routerId) => channels.connection(routerId) !== undefined,
      isBarred: () => false,
      sendGone: (routerId, link) =>
        channels.connection(routerId)?.channel.send(closeLinkMessage(link)),
      onGone: (link) => handler.upkeep.onLinkGone(link),
    })
    const handler = new CircuitHandler({
      clock,
      hosts,
      publishFact,
      table: this.circuits,
      shared: new SharedCircuits({
        selfId: id,
        topic: clusterNode.soft.open('circuits'),
        table: this.circuits,
        controllers: () => listRouterControllers(clusterNode),
        isInQuorum: () => clusterNode.leaderId() !== null,
        isSessionOver: () => false,
        clock,
        log: SILENT,
      }),
      log: SILENT,
      links: this.links,
      reads: new LinearizableReads(clusterNode, machine, defaultApiLimits),
      clients: { judge: () => Promise.resolve({ ok: false, fault: 'session' }) },
      tunnels: {
        judge: ({ service }) => {
          const serviceId = 'id' in service ? service.id : service.name
          return { ok: true, serviceId, identityName: 'tunnel' }
        },
      },
      connection: (routerId) => channels.connection(routerId),
      draw: () => random.next(),
    })
    channels.add(
      new RouterPeersHandler({
        routerIds: () => routerIds,
        connections: () => channels.connections(),
      }),
    )
    channels.add(
      createLinkHandler({
        table: this.links,
        log: SILENT,
        isCertificateOf: () => true,
        onOtherFault: (connection, fault) => handler.upkeep.onFault(connection, fault),
        onLinksReported: (routerId, ids) => handler.upkeep.onLinksReported(routerId, ids),
      }),
    )
    channels.add(handler)
    channels.start()
  }

  accept(socket: SimulatedSocket): void {
    this.channels.accept(socket.asSocket)
  }
}
