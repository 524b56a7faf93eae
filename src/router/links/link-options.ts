import { channelLimits, type ChannelLimits } from '../../channel/limits.ts'
import { circuitDataTypes } from '../../channel/messages/payload.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { LinkQueueLimits } from './link.ts'
import type { LinkSocketType } from '../../channel/messages/links.ts'

type LinkConfig = NonNullable<RouterConfig['link']>
type LinkChannelOptions = LinkConfig['dialers'][number]['options']

/** Limits for the channels of a link, from the options of its dialer or listener. */
export function linkChannelLimits(
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

/** Maximum numbers of messages that may wait at each socket of a link. */
export function linkQueueLimits(
  { payloadSenderQueueSize, ackSenderQueueSize }: LinkConfig,
  { outQueueSize }: LinkChannelOptions,
): LinkQueueLimits {
  return {
    payloadsMax: payloadSenderQueueSize + outQueueSize,
    acknowledgementsMax: ackSenderQueueSize + outQueueSize,
  }
}

/** Numbers of sockets of a link, from the options of its dialer. */
export function linkSocketCount({
  split,
  maxDefaultConnections,
  maxAckConnections,
}: LinkConfig['dialers'][number]): Readonly<Record<LinkSocketType, number>> {
  return split
    ? { 'link.default': maxDefaultConnections, 'link.ack': maxAckConnections }
    : { 'link.default': 1, 'link.ack': 0 }
}
