import { list, option, optionalSection, REQUIRED_OPTION, section } from '../engine/schema.ts'
import { HOUR_MS, MINUTE_MS } from '../engine/units.ts'
import { boolean, choice, duration, integer, optional, text } from '../engine/values.ts'
import { address, advertisedAddress } from './values.ts'
import {
  addressProtocols,
  backoffOptions,
  groups,
  heartbeatOptions,
  linkChannelOptions,
} from './shared-options.ts'

/** Keys of `link`: dialers and listeners for other routers. */
export const linkSection = optionalSection('Links to other routers.', {
  listeners: list(16, 'Listeners to which other routers connect.', {
    binding: option(choice(['transport']), {
      default: REQUIRED_OPTION,
      why: 'Type of the listener.',
    }),
    bind: option(address(addressProtocols.link), {
      default: REQUIRED_OPTION,
      why: 'Listen address.',
    }),
    advertise: option(optional(advertisedAddress(addressProtocols.link)), {
      default: null,
      why: 'Address at which other routers reach this listener. May be left out if `bind` names a single address.',
    }),
    bindInterface: option(optional(text()), {
      default: null,
      why: 'Interface that it is reported under.',
      hasEffect: false,
    }),
    groups,
    options: section('Options of the channel.', linkChannelOptions),
  }),
  dialers: list(16, 'Settings with which this router dials other routers.', {
    binding: option(choice(['transport']), {
      default: REQUIRED_OPTION,
      why: 'Type of the dialer.',
    }),
    split: option(boolean(), {
      default: true,
      why: 'true: a link has several connections, some of them only for acknowledgements. false: a link has one connection.',
    }),
    bind: option(optional(text('a local interface or IP address')), {
      default: null,
      why: 'Local interface or IP address from which this router dials.',
    }),
    bindInterface: option(optional(text()), {
      default: null,
      why: 'Interface that it is reported under.',
      hasEffect: false,
    }),
    groups,
    options: section('Options of the channel.', linkChannelOptions),
    maxDefaultConnections: option(integer(1, 100), {
      default: 3,
      why: 'Number of connections for payloads in one link.',
    }),
    maxAckConnections: option(integer(0, 100), {
      default: 1,
      why: 'Number of connections for acknowledgements in one link.',
    }),
    startupDelay: option(duration(0, HOUR_MS), {
      default: 3000,
      why: 'Wait after the first connection of a link before the router dials the further connections.',
    }),
    healthyDialBackoff: section(
      'Retries while the other router is connected to a controller.',
      backoffOptions({ min: 5000, max: 5 * MINUTE_MS, factor: 1.5 }),
    ),
    unhealthyDialBackoff: section(
      'Retries while the other router is connected to no controller. Once it connects, `healthyDialBackoff` applies.',
      backoffOptions({ min: MINUTE_MS, max: HOUR_MS, factor: 10 }),
    ),
  }),
  heartbeats: section('Heartbeats of links.', heartbeatOptions(60_000)),
  payloadSenderQueueSize: option(integer(1, 100_000), {
    default: 128,
    why: 'Maximum number of payloads that wait on one link.',
  }),
  ackSenderQueueSize: option(integer(1, 100_000), {
    default: 64,
    why: 'Maximum number of acknowledgements that wait on one link.',
  }),
})
