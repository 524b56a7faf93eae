import {
  defineKeyedSections,
  defineSectionList,
  defineOption,
  defineOptionalSection,
  REQUIRED_OPTION,
  defineRequiredSectionList,
  defineSection,
} from '../engine/schema.ts'
import { HOUR_MS } from '../engine/units.ts'
import { choiceType, durationType, optionalType, textType } from '../engine/values.ts'
import { hostPortType, pemSourceType } from './values.ts'

/** Keys of `web`: HTTPS servers of the router. */
export const webServerConfigList = defineSectionList(8, 'HTTPS servers of this router.', {
  name: defineOption(textType(), { default: REQUIRED_OPTION, why: 'Name of the server in logs.' }),
  bindPoints: defineRequiredSectionList(16, 'Addresses at which the server listens.', {
    interface: defineOption(hostPortType(), { default: REQUIRED_OPTION, why: 'Listen address.' }),
    address: defineOption(hostPortType(), {
      default: REQUIRED_OPTION,
      why: 'Address at which clients reach the server.',
      hasEffect: false,
    }),
    newAddress: defineOption(optionalType(hostPortType()), {
      default: null,
      why: 'Address that the server announces to clients in the response header `ziti-ctrl-address`.',
    }),
  }),
  apis: defineRequiredSectionList(4, 'APIs served.', {
    binding: defineOption(choiceType(['health-checks', 'metrics']), {
      default: REQUIRED_OPTION,
      why: 'health-checks: state of this router, without log-in. metrics: metrics for Prometheus at /metrics, for clients with a certificate from flotilla pki issue.',
    }),
    options: defineKeyedSections(0, 'The bindings have no options.', {}),
  }),
  identity: defineOptionalSection(
    'A separate identity for this server, instead of the identity of the router; all four keys are required.',
    {
      cert: defineOption(pemSourceType(), {
        default: REQUIRED_OPTION,
        why: 'Like the key of the same name in `identity`.',
        hasEffect: false,
      }),
      key: defineOption(pemSourceType(), {
        default: REQUIRED_OPTION,
        why: 'Like the key of the same name in `identity`.',
        isSecret: true,
      }),
      server_cert: defineOption(pemSourceType(), {
        default: REQUIRED_OPTION,
        why: 'Like the key of the same name in `identity`.',
      }),
      ca: defineOption(pemSourceType(), {
        default: REQUIRED_OPTION,
        why: 'Like the key of the same name in `identity`.',
        hasEffect: false,
      }),
    },
    { refusesMisspellings: true },
  ),
  options: defineSection(
    'Limits of a connection.',
    {
      readTimeout: defineOption(durationType(1, HOUR_MS), {
        default: 5000,
        why: 'Timeout for receiving a request.',
      }),
      idleTimeout: defineOption(durationType(1, HOUR_MS), {
        default: 5000,
        why: 'Maximum time between two requests of a connection.',
      }),
      writeTimeout: defineOption(durationType(1, HOUR_MS), {
        default: 10_000,
        why: 'Timeout for sending a response.',
      }),
      minTLSVersion: defineOption(choiceType(['TLS1.2', 'TLS1.3']), {
        default: 'TLS1.2',
        why: 'Oldest version of TLS.',
      }),
      maxTLSVersion: defineOption(choiceType(['TLS1.2', 'TLS1.3']), {
        default: 'TLS1.3',
        why: 'Newest version of TLS.',
      }),
    },
    { refusesMisspellings: true },
  ),
})
