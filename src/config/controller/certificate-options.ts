import { list, option, required, section } from '../engine/schema.ts'
import { path } from '../engine/values.ts'
import { nullable } from './values.ts'

/** Each certificate adds a TLS context and a set of watched files. */
export const SERVER_CERTIFICATES_MAX = 8

export const identityOptions = section(
  'Certificate and key of this controller, for peers and clients.',
  {
    cert: option(path(), {
      default: required,
      why: 'PEM: its own certificate, then the intermediates.',
    }),
    key: option(path(), {
      default: required,
      why: 'PEM private key of the certificate, mode 0600.',
    }),
    ca: option(path(), {
      default: required,
      why: 'PEM: the CA certificates that peers are verified against.',
    }),
    signer: section(
      'An authority of your own that signs leaves for this cluster, in place of one made by `cluster init`. Read when the cluster is formed, and not needed afterwards.',
      {
        cert: option(nullable(path()), {
          default: null,
          why: 'PEM: its CA certificate, then those above it that identity.ca does not hold.',
        }),
        key: option(nullable(path()), {
          default: null,
          why: 'PEM private key of it, mode 0600. Take it away once the cluster is formed.',
        }),
      },
    ),
  },
)

export const serverCertificates = list(
  SERVER_CERTIFICATES_MAX,
  'Certificates of other authorities for the HTTPS listeners, such as a public one for browsers. Shown to clients that ask for a name (SNI) that is in one of them and not in `identity.cert`.',
  {
    cert: option(path(), {
      default: required,
      why: 'PEM: the certificate, then the intermediates (`fullchain.pem`).',
    }),
    key: option(path(), {
      default: required,
      why: 'PEM private key of it, mode 0600. It may be another one at each renewal.',
    }),
  },
)
