import { channelLimits, type ChannelLimits } from '../../channel/limits.ts'
import { circuitDataTypes } from '../../channel/numbers.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { LinkQueues } from './link-registry.ts'

type LinkConfig = NonNullable<RouterConfig['link']>
type LinkChannelOptions = LinkConfig['dialers'][number]['options']

/** Limits of the channel of a link, by the options of its dialer or listener. */
export function linkLimits(
  { heartbeats }: LinkConfig,
  { writeTimeout }: LinkChannelOptions,
): ChannelLimits {
  const { sendInterval, checkInterval, closeUnresponsiveTimeout } = heartbeats
  return {
    ...channelLimits,
    heartbeatEveryMs: sendInterval,
    checkEveryMs: checkInterval,
    silentMsMax: closeUnresponsiveTimeout,
    firstSilentMsMax: sendInterval + closeUnresponsiveTimeout,
    unmeteredTypes: circuitDataTypes,
    ...(writeTimeout === null ? {} : { writeMsMax: writeTimeout }),
  }
}

/** Acknowledgements wait behind payloads at one socket, so they have the room of both. */
export function linkQueues(
  { payloadSenderQueueSize, ackSenderQueueSize }: LinkConfig,
  { outQueueSize }: LinkChannelOptions,
): LinkQueues {
  const payloadsMax = payloadSenderQueueSize + outQueueSize
  return { payloadsMax, acknowledgementsMax: payloadsMax + ackSenderQueueSize }
}
