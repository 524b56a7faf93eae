import { keyed, list, required, section, value } from '../engine/schema.ts'
import { choice, duration, hostPort, optional, pemSource, text } from './values.ts'
import { MINUTES_MAX_MS } from './spans.ts'

/** Keys of `web`: the HTTPS servers of this router. */
export const webList = list(8, 'HTTPS servers. The one API there is: health-checks.', {
  name: value(text(), { default: required, why: 'For logs.' }),
  bindPoints: list(16, 'Where it listens; one or more.', {
    interface: value(hostPort(), { default: required, why: 'Where it listens.' }),
    address: value(hostPort(), { default: required, why: 'Under which address it is reached.' }),
    newAddress: value(optional(hostPort()), {
      default: null,
      why: 'Address announced to clients in the header `ziti-ctrl-address`.',
    }),
  }),
  apis: list(4, 'APIs served; one or more.', {
    binding: value(choice(['health-checks']), { default: required, why: 'Name of the API.' }),
    options: keyed(0, 'It has none.', {}),
  }),
  identity: section('null', 'Another identity than that of the router; all four are needed.', {
    cert: value(pemSource(), { default: required, why: 'As in `identity`.' }),
    key: value(pemSource(), { default: required, why: 'As in `identity`.', isSecret: true }),
    server_cert: value(pemSource(), { default: required, why: 'As in `identity`.' }),
    ca: value(pemSource(), { default: required, why: 'As in `identity`.' }),
  }),
  options: section('defaults', 'Bounds of a connection.', {
    readTimeout: value(duration(1, MINUTES_MAX_MS), {
      default: 5000,
      why: 'For a request to arrive.',
    }),
    idleTimeout: value(duration(1, MINUTES_MAX_MS), {
      default: 5000,
      why: 'Between two requests.',
    }),
    writeTimeout: value(duration(1, MINUTES_MAX_MS), {
      default: 10_000,
      why: 'For an answer to be read.',
    }),
    minTLSVersion: value(choice(['TLS1.2', 'TLS1.3']), {
      default: 'TLS1.2',
      why: 'Oldest version of TLS.',
    }),
    maxTLSVersion: value(choice(['TLS1.2', 'TLS1.3']), {
      default: 'TLS1.3',
      why: 'Newest version of TLS.',
    }),
  }),
})
