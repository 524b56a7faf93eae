import type { Clock } from '../../lib/clock.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { FIRST_LINK_SOCKET_TYPE } from '../../channel/messages/links.ts'
import type { Link } from '../links/link.ts'
import { HealthCheck } from './health-check.ts'
import { channelContentType } from '../../channel/numbers.ts'

interface RouterCheckDeps {
  readonly config: RouterConfig
  readonly clock: Clock
  readonly connections: () => readonly ControlConnection[]
  readonly links: () => readonly Link[]
}

/** Creates two checks: whether a controller responds, and whether the router has enough links. */
export function routerChecks({
  config,
  clock,
  connections,
  links,
}: RouterCheckDeps): HealthCheck[] {
  const { ctrlPingCheck, linkCheck } = config.healthChecks
  return [
    new HealthCheck({
      id: 'controllerPing',
      clock,
      intervalMs: ctrlPingCheck.interval,
      initialDelayMs: ctrlPingCheck.initialDelay,
      run: () => pingOne(connections(), ctrlPingCheck.timeout),
    }),
    new HealthCheck({
      id: 'link.health',
      clock,
      intervalMs: linkCheck.interval,
      initialDelayMs: linkCheck.initialDelay,
      run: () => {
        const count = links().length
        if (count >= linkCheck.minLinks) return links().map(shownLink)
        throw new Error(`${count} links, and ${linkCheck.minLinks} are needed`)
      },
    }),
  ]
}

function shownLink(link: Link): object {
  const { id, peerId, localAddress, remoteAddress, channel } = link
  return {
    linkId: id,
    destRouterId: peerId,
    latency: channel.roundTripMs,
    addresses: { [FIRST_LINK_SOCKET_TYPE]: { localAddr: localAddress, remoteAddr: remoteAddress } },
  }
}

/** Succeeds if one of the controllers responds. */
async function pingOne(
  connections: readonly ControlConnection[],
  timeoutMs: number,
): Promise<undefined> {
  if (connections.length === 0) throw new Error('connected to no controller')
  const pings = connections.map(({ channel }) =>
    channel.request({ contentType: channelContentType.ping }, timeoutMs),
  )
  try {
    await Promise.any(pings)
  } catch {
    throw new Error(`no controller of ${connections.length} answered within ${timeoutMs} ms`)
  }
}
