import { list, required, section, value } from '../engine/schema.ts'
import {
  addressProtocols,
  backoffOptions,
  channelOptions,
  groups,
  heartbeatOptions,
} from './shared-options.ts'
import {
  address,
  advertised,
  boolean,
  choice,
  duration,
  integer,
  optional,
  text,
} from './values.ts'
import { MINUTE_MS, MINUTES_MAX_MS } from './spans.ts'

/** Keys of `link`: what this router dials and what it listens on for other routers. */
export const linkSection = section('null', 'Links to other routers.', {
  listeners: list(16, 'Where other routers connect.', {
    binding: value(choice(['transport']), {
      default: required,
      why: 'The subsystem that creates it.',
    }),
    bind: value(address(addressProtocols.link), {
      default: required,
      why: 'Where it listens.',
    }),
    advertise: value(advertised(addressProtocols.link), {
      default: required,
      why: 'Under which address other routers reach it.',
    }),
    bindInterface: value(optional(text()), {
      default: null,
      why: 'Interface that it is reported under.',
    }),
    groups,
    options: section('defaults', 'Options of the channel.', channelOptions),
  }),
  dialers: list(16, 'How other routers are dialed.', {
    binding: value(choice(['transport']), { default: required, why: 'The subsystem.' }),
    split: value(boolean(), {
      default: true,
      why: 'Separate connections for payloads and acknowledgements.',
    }),
    bind: value(optional(text('a local interface or IP address')), {
      default: null,
      why: 'Local interface or IP address that is dialed from.',
    }),
    bindInterface: value(optional(text()), {
      default: null,
      why: 'Interface that it is reported under.',
    }),
    groups,
    options: section('defaults', 'Options of the channel.', channelOptions),
    maxDefaultConnections: value(integer(1, 100), {
      default: 3,
      why: 'Connections of one link for payloads.',
    }),
    maxAckConnections: value(integer(0, 100), {
      default: 1,
      why: 'Connections of one link for acknowledgements.',
    }),
    startupDelay: value(duration(0, MINUTES_MAX_MS), {
      default: 3000,
      why: 'Wait before the further connections of a link are dialed.',
    }),
    healthyDialBackoff: section(
      'defaults',
      'Retries while the other router is connected to a controller.',
      backoffOptions({ min: 5000, max: 5 * MINUTE_MS, factor: 1.5 }),
    ),
    unhealthyDialBackoff: section(
      'defaults',
      'Retries while it is not; when it connects, those of `healthyDialBackoff` follow.',
      backoffOptions({ min: MINUTE_MS, max: 60 * MINUTE_MS, factor: 10 }),
    ),
  }),
  heartbeats: section('defaults', 'Heartbeats of links.', heartbeatOptions(60_000)),
  payloadSenderQueueSize: value(integer(1, 100_000), {
    default: 128,
    why: 'Payloads that may wait on one link.',
  }),
  ackSenderQueueSize: value(integer(1, 100_000), {
    default: 64,
    why: 'Acknowledgements that may wait on one link.',
  }),
})
