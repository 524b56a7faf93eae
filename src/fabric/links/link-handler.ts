import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type Fault,
  FaultSchema,
  FaultSubject,
  type LinkConnState,
  LinkStateUpdateSchema,
  MetricsSchema,
  type RouterLink,
  RouterLinksSchema,
  VerifyRouterSchema,
} from '../../../proto/gen/router_pb.ts'
import type { OutboundMessage } from '../../channel/frame.ts'
import type { LinkConnection, DialedLinkIds, LiveLink } from '../../ports/live-table.ts'
import type { RouterMetrics } from '../../ports/observations.ts'
import { decodeIncrementally } from '../../channel/wire-scan.ts'
import type { MessageHandler, RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import type { RouterLogger } from '../router-channels.ts'
import type { LinkTable, ReportedLink } from './link-table.ts'
import { readRouterMetrics } from './router-metrics.ts'

const LATENCY = /^link\.(.{1,128})\.latency$/
const NAME_CHARACTERS_MAX = 256

interface LinkHandlerDeps {
  readonly table: LinkTable
  readonly log: RouterLogger
  /** Called with the metrics of a router, unless another controller publishes these metrics. */
  readonly onMetrics?: (metrics: RouterMetrics) => void
  /**
   * Handles a fault that does not concern a link in the table.
   * @returns the remaining steps of the work; undefined if there are none.
   */
  readonly onOtherFault: (connection: RouterConnection, fault: Fault) => Iterator<void> | undefined
  /**
   * Called when a router has reported all links that it dialed.
   * @returns the remaining steps of the work; undefined if there are none.
   */
  readonly onLinksReported?: (routerId: string, ids: DialedLinkIds) => Iterable<void> | undefined
  /**
   * Whether one of the fingerprints (hex SHA-1) is that of the router's current or pending
   * certificate. The decision depends only on replicated records, so any controller can answer for
   * a router that is connected to another controller.
   */
  readonly isCertificateOf: (routerId: string, fingerprints: readonly string[]) => boolean
}

/** Handles the reports of routers about their links. */
export function createLinkHandler(deps: LinkHandlerDeps): ChannelHandler {
  const { table, log, isCertificateOf, onMetrics, onOtherFault, onLinksReported } = deps
  return {
    handlers: new Map<number, MessageHandler>([
      [
        controlContentType.routerLinks,
        function* ({ router }, { body }) {
          const { links, fullRefresh } = yield* decodeIncrementally(RouterLinksSchema, body)
          // Removes lost links before it adds new ones, so that the new ones are within the limits.
          const byId = new Map<string, RouterLink>()
          for (const link of links) {
            if (link.id !== '') byId.set(link.id, link)
            yield
          }
          if (fullRefresh) yield* table.keep(router.id, byId)
          let leftOut = 0
          for (const link of byId.values()) {
            if (!table.report(router.id, reportedLink(link))) leftOut += 1
            yield
          }
          if (fullRefresh) table.onAllReported(router.id)
          if (fullRefresh) yield* onLinksReported?.(router.id, byId) ?? []
          if (leftOut > 0) log.warn({ routerId: router.id, leftOut }, 'too many links of a router')
        },
      ],
      [
        controlContentType.linkState,
        ({ router }, { body }) => {
          const { linkId, linkIteration, connState } = fromBinary(LinkStateUpdateSchema, body)
          table.update(router.id, linkId, linkIteration, connectionsIn(connState))
        },
      ],
      [
        controlContentType.fault,
        (connection, message) => {
          const fault = fromBinary(FaultSchema, message.body)
          const { subject, id, iteration } = fault
          const isOfLink = subject === FaultSubject.LINK || subject === FaultSubject.LINK_DUPLICATE
          // The link is not in the table, for example because the channel of the router that dialed
          // it has closed; circuits may still use the link.
          if (!isOfLink || table.get(id) === undefined) return onOtherFault(connection, fault)
          return table.lost(connection.router.id, id, iteration)
        },
      ],
      [
        controlContentType.metrics,
        function* ({ router }, { body }) {
          const metrics = yield* decodeIncrementally(MetricsSchema, body)
          if (!metrics.doNotPropagate) onMetrics?.(readRouterMetrics(router.id, metrics))
          for (const name in metrics.histograms) {
            const id = LATENCY.exec(name.slice(0, NAME_CHARACTERS_MAX))?.[1]
            if (id !== undefined)
              table.measured(router.id, id, metrics.histograms[name]?.mean ?? NaN)
            yield
          }
        },
      ],
      [
        controlContentType.verifyRouter,
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

/**
 * Message that makes a router close a link, for example because the other router has lost it or an
 * administrator has removed it.
 */
export function closeLinkMessage({ id, iteration }: LiveLink): OutboundMessage {
  const fault = create(FaultSchema, { subject: FaultSubject.LINK, id, iteration })
  return { contentType: controlContentType.fault, body: toBinary(FaultSchema, fault) }
}

function reportedLink({ connState, ...link }: RouterLink): ReportedLink {
  return {
    id: link.id,
    destRouterId: link.destRouterId,
    dialAddress: link.dialAddress,
    protocol: link.linkProtocol,
    iteration: link.iteration,
    connections: connectionsIn(connState),
  }
}

function connectionsIn(state: LinkConnState | undefined): LinkConnection[] {
  return (state?.conns ?? []).map(({ type, localAddr, remoteAddr }) => ({
    type,
    sourceAddress: localAddr,
    destAddress: remoteAddr,
  }))
}
