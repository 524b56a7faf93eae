import { type RouterAlert, RouterAlertsSchema } from '../../proto/gen/router_pb.ts'
import { controlContentType } from '../channel/messages/control.ts'
import { decodeIncrementally } from '../channel/wire-scan.ts'
import { KeyedTokenBuckets } from '../lib/bounds/keyed-token-buckets.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { copyPrefix } from '../lib/text/copy-prefix.ts'
import type { ObservationSink } from '../ports/observations.ts'
import type { ChannelHandler } from './channel-handler.ts'
import { routerLimits } from './limits.ts'
import { reportedTimeMs } from './reported-time.ts'
import type { RouterLogger } from './router-channels.ts'

const { routerAlertItemsMax, routerTextCharactersMax } = routerLimits

/** Entity type under which a router reports itself in `relatedEntities`. */
const SELF = 'self'
const SELF_WITH_TUNNEL = 'ert'

const severities: ReadonlySet<string> = new Set(['error', 'warning', 'info'])

/** Publishes the alerts of routers about faults that an operator can correct. */
export class AlertHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #publishFact: ObservationSink
  readonly #log: RouterLogger
  /** Limits the rate of each router, so that one router cannot displace the events of others. */
  readonly #rates: KeyedTokenBuckets

  constructor(
    publishFact: ObservationSink,
    log: RouterLogger,
    clock: Pick<Clock, 'monotonicMs'> = systemClock,
  ) {
    this.#publishFact = publishFact
    this.#log = log
    const { routerAlertsBurst: burst, routerAlertsPerSecond: perSecond } = routerLimits
    const keysMax = routerLimits.routerConnectionsMax
    this.#rates = new KeyedTokenBuckets({ burst, perSecond, keysMax }, clock)
    this.handlers = new Map([
      [controlContentType.alerts, ({ router }, { body }) => this.#publish(router.id, body)],
    ])
  }

  *#publish(routerId: string, body: Uint8Array): Generator<void, void> {
    const { alerts } = yield* decodeIncrementally(RouterAlertsSchema, body)
    for (const [at, alert] of alerts.entries()) {
      if (!this.#rates.take(routerId)) {
        this.#log.warn({ routerId, dropped: alerts.length - at }, 'too many alerts of a router')
        return
      }
      const atMs = reportedTimeMs(alert.timestamp)
      this.#publishFact({
        kind: 'routerAlert',
        // The source in the message is ignored: a router can only speak for itself.
        routerId,
        severity: severities.has(alert.severity) ? alert.severity : 'warning',
        text: shortText(alert.message),
        details: alert.details.slice(0, routerAlertItemsMax).map(shortText),
        relatedEntities: relatedEntities(routerId, alert),
        ...(atMs === null ? {} : { atMs }),
      })
      yield
    }
  }
}

/**
 * IDs by entity type. The entry `self`, with which a router names itself, becomes `router` with the
 * router's ID, and also `identity` if the router has a tunnel.
 */
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
