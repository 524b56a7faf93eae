import {
  defineSectionList,
  defineOption,
  defineOptionalSection,
  REQUIRED_OPTION,
  defineSection,
} from '../engine/schema.ts'
import { HOUR_MS, MINUTE_MS } from '../engine/units.ts'
import {
  booleanType,
  choiceType,
  durationType,
  integerType,
  optionalType,
  textType,
} from '../engine/values.ts'
import { addressType, advertisedAddressType } from './values.ts'
import {
  addressProtocols,
  backoffOptions,
  linkGroupsOption,
  heartbeatOptions,
  linkChannelOptions,
} from './shared-options.ts'

/** Keys of `link`: dialers and listeners for other routers. */
export const linkSection = defineOptionalSection('Links to other routers.', {
  listeners: defineSectionList(16, 'Listeners to which other routers connect.', {
    binding: defineOption(choiceType(['transport']), {
      default: REQUIRED_OPTION,
      why: 'Type of the listener.',
    }),
    bind: defineOption(addressType(addressProtocols.link), {
      default: REQUIRED_OPTION,
      why: 'Listen address.',
    }),
    advertise: defineOption(optionalType(advertisedAddressType(addressProtocols.link)), {
      default: null,
      why: 'Address at which other routers reach this listener. May be left out if `bind` names a single address.',
    }),
    bindInterface: defineOption(optionalType(textType()), {
      default: null,
      why: 'Network interface under which the router reports this listener.',
      hasEffect: false,
    }),
    groups: linkGroupsOption,
    options: defineSection('Options of the channel.', linkChannelOptions),
  }),
  dialers: defineSectionList(16, 'Settings with which this router dials other routers.', {
    binding: defineOption(choiceType(['transport']), {
      default: REQUIRED_OPTION,
      why: 'Type of the dialer.',
    }),
    split: defineOption(booleanType(), {
      default: true,
      why: 'true: a link has several connections, some of them only for acknowledgments. false: a link has one connection.',
    }),
    bind: defineOption(optionalType(textType('a local interface or IP address')), {
      default: null,
      why: 'Local interface or IP address from which this router dials.',
    }),
    bindInterface: defineOption(optionalType(textType()), {
      default: null,
      why: 'Network interface under which the router reports this dialer.',
      hasEffect: false,
    }),
    groups: linkGroupsOption,
    options: defineSection('Options of the channel.', linkChannelOptions),
    maxDefaultConnections: defineOption(integerType(1, 100), {
      default: 3,
      why: 'Number of connections for payloads in one link.',
    }),
    maxAckConnections: defineOption(integerType(0, 100), {
      default: 1,
      why: 'Number of connections for acknowledgments in one link.',
    }),
    startupDelay: defineOption(durationType(0, HOUR_MS), {
      default: 3000,
      why: 'Wait after the first connection of a link before the router dials the further connections.',
    }),
    healthyDialBackoff: defineSection(
      'Retries while the other router is connected to a controller.',
      backoffOptions({ min: 5000, max: 5 * MINUTE_MS, factor: 1.5 }),
    ),
    unhealthyDialBackoff: defineSection(
      'Retries while the other router is connected to no controller. Once it connects, `healthyDialBackoff` applies.',
      backoffOptions({ min: MINUTE_MS, max: HOUR_MS, factor: 10 }),
    ),
  }),
  heartbeats: defineSection('Heartbeats of links.', heartbeatOptions(60_000)),
  payloadSenderQueueSize: defineOption(integerType(1, 100_000), {
    default: 128,
    why: 'Maximum number of payloads that wait on one link.',
  }),
  ackSenderQueueSize: defineOption(integerType(1, 100_000), {
    default: 64,
    why: 'Maximum number of acknowledgments that wait on one link.',
  }),
})
