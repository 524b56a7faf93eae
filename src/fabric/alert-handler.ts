import { type RouterAlert, RouterAlertsSchema } from '../../proto/gen/router_pb.ts'
import { controlContentType } from '../channel/messages/control.ts'
import { decodeIncrementally } from '../channel/wire-scan.ts'
import { copyPrefix } from '../lib/text/copy-prefix.ts'
import type { ObservationSink } from '../ports/observations.ts'
import type { ChannelHandler } from './channel-handler.ts'
import { routerLimits } from './limits.ts'
import { reportedTimeMs } from './reported-time.ts'

const { routerAlertItemsMax, routerAlertsMax, routerTextCharactersMax } = routerLimits

/** Related entity by which a router names itself; the value `ert` means a router with a tunnel. */
const SELF = 'self'
const SELF_WITH_TUNNEL = 'ert'

/** Publishes the alerts of routers about faults that an operator can correct. */
export class AlertHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #publishFact: ObservationSink

  constructor(publishFact: ObservationSink) {
    this.#publishFact = publishFact
    this.handlers = new Map([
      [controlContentType.alerts, ({ router }, { body }) => this.#publish(router.id, body)],
    ])
  }

  *#publish(routerId: string, body: Uint8Array): Generator<void, void> {
    const { alerts } = yield* decodeIncrementally(RouterAlertsSchema, body)
    for (const alert of alerts.slice(0, routerAlertsMax)) {
      const atMs = reportedTimeMs(alert.timestamp)
      this.#publishFact({
        kind: 'routerAlert',
        // The source in the message is ignored: a router can only speak for itself.
        routerId,
        severity: shortText(alert.severity),
        text: shortText(alert.message),
        details: alert.details.slice(0, routerAlertItemsMax).map(shortText),
        relatedEntities: relatedEntities(routerId, alert),
        ...(atMs === null ? {} : { atMs }),
      })
      yield
    }
  }
}

/** IDs by entity type. The router's own ID replaces the entry by which the router names itself. */
function relatedEntities(
  routerId: string,
  { relatedEntities: reported }: RouterAlert,
): Record<string, string> {
  const { [SELF]: self, ...others } = reported
  const known = Object.entries(others).slice(0, routerAlertItemsMax)
  return {
    ...Object.fromEntries(known.map(([type, id]) => [shortText(type), shortText(id)])),
    ...(self === undefined ? {} : { router: routerId }),
    ...(self === SELF_WITH_TUNNEL ? { identity: routerId } : {}),
  }
}

function shortText(text: string): string {
  return copyPrefix(text, routerTextCharactersMax)
}
