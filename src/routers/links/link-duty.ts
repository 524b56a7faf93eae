import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  FaultSchema,
  FaultSubject,
  LinkStateUpdateSchema,
  MetricsSchema,
  RouterLinksSchema,
  VerifyRouterSchema,
} from '../../../proto/gen/router_pb.ts'
import type { LinkConnState } from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/channel.ts'
import type { LinkConnection, LiveLink } from '../../ports/live-links.ts'
import type { RouterMetrics } from '../../ports/live-facts.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { RouterConnection } from '../connection.ts'
import type { RouterDuty } from '../duty.ts'
import { routerMessage } from '../messages.ts'
import type { RouterLogger } from '../router-channels.ts'
import type { LinkTable } from './link-table.ts'
import { routerMetricsIn } from './router-metrics.ts'

const LATENCY = /^link\.(.{1,128})\.latency$/

export interface LinkDutyParts {
  readonly table: LinkTable
  readonly log: RouterLogger
  /** A fault that is none of a link. */
  /** What a router tells of itself, but for what another controller makes known. */
  readonly onMetrics?: (metrics: RouterMetrics) => void
  readonly onOtherFault: (connection: RouterConnection, message: ChannelMessage) => void
  /**
   * Whether one of the fingerprints, hex SHA-1, is that of the certificate by which the router
   * connects. Judged by the records, so that any controller can answer for a router that is
   * connected elsewhere.
   */
  readonly isCertificateOf: (routerId: string, fingerprints: readonly string[]) => boolean
}

/** What routers say of the links among them. */
export function linkDuty(parts: LinkDutyParts): RouterDuty {
  const { table, log, isCertificateOf, onMetrics, onOtherFault } = parts
  return {
    handlers: new Map([
      [
        routerMessage.routerLinks,
        ({ router }, { body }) => {
          const { links, fullRefresh } = fromBinary(RouterLinksSchema, body)
          const reported = links.map(({ connState, linkProtocol, ...link }) => ({
            ...{ id: link.id, destRouterId: link.destRouterId, dialAddress: link.dialAddress },
            ...{ protocol: linkProtocol, iteration: link.iteration },
            connections: connectionsIn(connState),
          }))
          const leftOut = table.report(router.id, reported, fullRefresh)
          if (leftOut > 0) log.warn({ routerId: router.id, leftOut }, 'too many links of a router')
        },
      ],
      [
        routerMessage.linkStateUpdate,
        ({ router }, { body }) => {
          const { linkId, linkIteration, connState } = fromBinary(LinkStateUpdateSchema, body)
          table.update(router.id, linkId, linkIteration, connectionsIn(connState))
        },
      ],
      [
        routerMessage.fault,
        (connection, message) => {
          const { subject, id, iteration } = fromBinary(FaultSchema, message.body)
          const isOfLink = subject === FaultSubject.LINK || subject === FaultSubject.LINK_DUPLICATE
          if (isOfLink) table.lost(connection.router.id, id, iteration)
          else onOtherFault(connection, message)
        },
      ],
      [
        routerMessage.metrics,
        ({ router }, { body }) => {
          const metrics = fromBinary(MetricsSchema, body)
          if (!metrics.doNotPropagate) onMetrics?.(routerMetricsIn(router.id, metrics))
          for (const [name, { mean }] of Object.entries(metrics.histograms)) {
            const id = LATENCY.exec(name)?.[1]
            if (id !== undefined) table.measured(router.id, id, mean)
          }
        },
      ],
      [
        routerMessage.verifyRouter,
        ({ channel }, message) => {
          const { routerId, fingerprints } = fromBinary(VerifyRouterSchema, message.body)
          const isRight = isCertificateOf(routerId, fingerprints)
          channel.replyResult(message, isRight, isRight ? '' : 'not a certificate of the router')
        },
      ],
    ]),
    onRevoked: ({ router }) => table.banish(router.id),
    onDisconnected: ({ router }) => table.forget(router.id),
  }
}

export function linkGone({ id, iteration }: LiveLink): Outgoing {
  const fault = create(FaultSchema, { subject: FaultSubject.LINK, id, iteration })
  return { contentType: routerMessage.fault, body: toBinary(FaultSchema, fault) }
}

function connectionsIn(state: LinkConnState | undefined): LinkConnection[] {
  return (state?.conns ?? []).map(({ type, localAddr, remoteAddr }) => ({
    type,
    sourceAddress: localAddr,
    destAddress: remoteAddr,
  }))
}
