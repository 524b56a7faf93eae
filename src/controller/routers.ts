import { peerChainOf } from '../api/transport/peer.ts'
import { boundConnections } from '../api/transport/connections.ts'
import { listenerTls } from '../api/transport/tls.ts'
import { judgeRouter } from '../api/auth/client-certificate.ts'
import type { Gateway } from '../cluster/gateway.ts'
import type { ControllerConfig } from '../config/options.ts'
import type { Router } from '../entities/router.ts'
import type { StateMachine } from '../fsm/machine.ts'
import { assert } from '../lib/assert.ts'
import { systemClock } from '../lib/clock.ts'
import { parseHostPort } from '../lib/names.ts'
import type { NetworkAuthorities } from '../ports/network-authorities.ts'
import type { RouterGate } from '../routers/admission.ts'
import type { ControllerIdentity } from '../routers/hello-answer.ts'
import { routerLimits } from '../routers/limits.ts'
import { RouterListener } from '../routers/listener.ts'
import type { CertificateAndKey } from '../routers/listener.ts'
import { RouterChannels } from '../routers/router-channels.ts'
import type { RouterCluster, RouterLogger } from '../routers/router-channels.ts'
import { RouterStatusBoard, routerTopic } from '../routers/status-board.ts'
import { API_FAMILY_VERSION, programDate, programRevision } from './version.ts'

export interface RouterParts {
  readonly config: ControllerConfig
  readonly credentials: CertificateAndKey
  readonly gateway: Gateway
  readonly machine: StateMachine
  readonly authorities: NetworkAuthorities
  readonly log: RouterLogger
  /** While this controller must not answer from its state, nothing in it admits anybody. */
  readonly isOut: () => boolean
}

/**
 * The router listener of a controller; null where routers have none here. Which routers are connected is shown on every
 * controller, whether any can connect there or not.
 * @throws the error of the system when it cannot listen.
 */
export async function openRouters(parts: RouterParts): Promise<RouterListener | null> {
  const { config, credentials, gateway, machine, log } = parts
  const board = new RouterStatusBoard(config.id, routerTopic(gateway.soft))
  machine.routers = board
  if (config.routers.bind === null) return null
  const address = parseHostPort(config.routers.bind)
  assert(address !== null, 'the configuration has checked the address')
  const channels = new RouterChannels({
    ...{ board, log, clock: systemClock },
    identity: identityOf(config.id, gateway.clusterId),
    gate: gateOf(parts),
    cluster: clusterOf(gateway),
  })
  const bounds = {
    connectionsPerSourceMax: routerLimits.routerConnectionsPerSourceMax,
    handshakeTimeoutMs: routerLimits.routerHandshakeTimeoutMs,
  }
  return await RouterListener.open(
    { channels, tls: listenerTls, bound: (server) => boundConnections(server, true, bounds) },
    credentials,
    address,
  )
}

function identityOf(id: string, clusterId: string): ControllerIdentity {
  const version = {
    version: API_FAMILY_VERSION,
    revision: programRevision(),
    buildDate: programDate(),
    os: process.platform,
    arch: process.arch,
  }
  return { id, clusterId, version }
}

/** Who may connect, and for how long: by the record alone, whatever else is asked of the router later. */
export function gateOf({
  machine,
  authorities,
  isOut,
}: Pick<RouterParts, 'machine' | 'authorities' | 'isOut'>): RouterGate {
  return {
    admit: (socket) => {
      if (isOut()) return { ok: false, reason: 'this controller is out of service' }
      const chain = peerChainOf(socket)
      if (chain === null) return { ok: false, reason: 'no certificate was shown' }
      const judged = judgeRouter({ state: machine, authorities, clock: systemClock }, chain)
      if (!judged.ok) return judged
      const { id, name, isEdge, certPem } = judged.router
      assert(certPem !== null, 'a router is admitted by the certificate of its record')
      return { ok: true, router: { id, name, isEdge, certPem } }
    },
    revoked: ({ id, certPem }) => {
      const record = machine.get<Router>('router', id)
      if (record === undefined) return 'the router was deleted'
      if (record.disabled) return 'the router was disabled'
      if (!record.isVerified) return 'the router is to enroll again'
      return record.certPem === certPem ? null : 'the router has another certificate now'
    },
  }
}

function clusterOf(gateway: Gateway): RouterCluster {
  return {
    addresses: () => {
      const members = gateway.members()
      // What was never heard of has no address yet, but it may have one.
      const isKnown = members.every(
        ({ startedAtMs, routerAddress }) => startedAtMs > 0 || routerAddress !== null,
      )
      if (members.length === 0 || !isKnown) return null
      const controllers = members.flatMap(({ id, routerAddress }) =>
        routerAddress === null ? [] : [{ id, address: routerAddress }],
      )
      const { index } = gateway.configuration()
      return { controllers, index, isLeader: gateway.leaderId() === gateway.selfId }
    },
    leaderIndex: () => {
      if (gateway.leaderId() !== gateway.selfId) return null
      return gateway.members().find(({ id }) => id === gateway.selfId)?.progress?.term ?? null
    },
  }
}
