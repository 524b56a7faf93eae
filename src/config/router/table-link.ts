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
  listeners: list(16, 'Where other routers connect.', {
    binding: option(choice(['transport']), {
      default: REQUIRED_OPTION,
      why: 'The subsystem that creates it.',
    }),
    bind: option(address(addressProtocols.link), {
      default: REQUIRED_OPTION,
      why: 'Where it listens.',
    }),
    advertise: option(optional(advertisedAddress(addressProtocols.link)), {
      default: null,
      why: 'Under which address other routers reach it; `bind` when that names one address.',
    }),
    bindInterface: option(optional(text()), {
      default: null,
      why: 'Interface that it is reported under.',
      hasEffect: false,
    }),
    groups,
    options: section('Options of the channel.', linkChannelOptions),
  }),
  dialers: list(16, 'How other routers are dialed.', {
    binding: option(choice(['transport']), { default: REQUIRED_OPTION, why: 'The subsystem.' }),
    split: option(boolean(), {
      default: true,
      why: 'Several connections a link, some of them for acknowledgements alone; false: one.',
    }),
    bind: option(optional(text('a local interface or IP address')), {
      default: null,
      why: 'Local interface or IP address that is dialed from.',
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
      why: 'Connections of one link for payloads.',
    }),
    maxAckConnections: option(integer(0, 100), {
      default: 1,
      why: 'Connections of one link for acknowledgements.',
    }),
    startupDelay: option(duration(0, HOUR_MS), {
      default: 3000,
      why: 'Wait before the further connections of a link are dialed.',
    }),
    healthyDialBackoff: section(
      'Retries while the other router is connected to a controller.',
      backoffOptions({ min: 5000, max: 5 * MINUTE_MS, factor: 1.5 }),
    ),
    unhealthyDialBackoff: section(
      'Retries while it is not; when it connects, those of `healthyDialBackoff` follow.',
      backoffOptions({ min: MINUTE_MS, max: HOUR_MS, factor: 10 }),
    ),
  }),
  heartbeats: section('Heartbeats of links.', heartbeatOptions(60_000)),
  payloadSenderQueueSize: option(integer(1, 100_000), {
    default: 128,
    why: 'Payloads that may wait on one link.',
  }),
  ackSenderQueueSize: option(integer(1, 100_000), {
    default: 64,
    why: 'Acknowledgements that may wait on one link.',
  }),
})
