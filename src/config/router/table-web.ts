import {
  keyedSections,
  list,
  option,
  optionalSection,
  REQUIRED_OPTION,
  requiredList,
  section,
} from '../engine/schema.ts'
import { HOUR_MS } from '../engine/units.ts'
import { choice, duration, optional, text } from '../engine/values.ts'
import { hostPort, pemSource } from './values.ts'

/** Keys of `web`: HTTPS servers of the router. */
export const webList = list(8, 'HTTPS servers of this router.', {
  name: option(text(), { default: REQUIRED_OPTION, why: 'Name of the server in logs.' }),
  bindPoints: requiredList(16, 'Addresses at which the server listens.', {
    interface: option(hostPort(), { default: REQUIRED_OPTION, why: 'Listen address.' }),
    address: option(hostPort(), {
      default: REQUIRED_OPTION,
      why: 'Address at which clients reach the server.',
      hasEffect: false,
    }),
    newAddress: option(optional(hostPort()), {
      default: null,
      why: 'Address that the server announces to clients in the response header `ziti-ctrl-address`.',
    }),
  }),
  apis: requiredList(4, 'APIs served.', {
    binding: option(choice(['health-checks', 'metrics']), {
      default: REQUIRED_OPTION,
      why: 'health-checks: state of this router, without log-in. metrics: metrics for Prometheus at /metrics, for clients with a certificate from flotilla pki issue.',
    }),
    options: keyedSections(0, 'The bindings have no options.', {}),
  }),
  identity: optionalSection(
    'A separate identity for this server, in place of the identity of the router; all four keys are required.',
    {
      cert: option(pemSource(), {
        default: REQUIRED_OPTION,
        why: 'Like the key of the same name in `identity`.',
        hasEffect: false,
      }),
      key: option(pemSource(), {
        default: REQUIRED_OPTION,
        why: 'Like the key of the same name in `identity`.',
        isSecret: true,
      }),
      server_cert: option(pemSource(), {
        default: REQUIRED_OPTION,
        why: 'Like the key of the same name in `identity`.',
      }),
      ca: option(pemSource(), {
        default: REQUIRED_OPTION,
        why: 'Like the key of the same name in `identity`.',
        hasEffect: false,
      }),
    },
    { refusesMisspellings: true },
  ),
  options: section(
    'Limits of a connection.',
    {
      readTimeout: option(duration(1, HOUR_MS), {
        default: 5000,
        why: 'Timeout for receiving a request.',
      }),
      idleTimeout: option(duration(1, HOUR_MS), {
        default: 5000,
        why: 'Maximum time between two requests of a connection.',
      }),
      writeTimeout: option(duration(1, HOUR_MS), {
        default: 10_000,
        why: 'Timeout for sending a response.',
      }),
      minTLSVersion: option(choice(['TLS1.2', 'TLS1.3']), {
        default: 'TLS1.2',
        why: 'Oldest version of TLS.',
      }),
      maxTLSVersion: option(choice(['TLS1.2', 'TLS1.3']), {
        default: 'TLS1.3',
        why: 'Newest version of TLS.',
      }),
    },
    { refusesMisspellings: true },
  ),
})
