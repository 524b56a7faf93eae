import { constants } from 'node:crypto'

/**
 * TLS of the HTTPS listeners: version 1.2 at least, with forward secrecy and authenticated
 * encryption alone (RFC 9325, 4.2). The three suites of TLS 1.3 come first.
 */
export const listenerTls = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'TLS_AES_128_GCM_SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
  ].join(':'),
  honorCipherOrder: true,
  // A client may show a certificate and need not: what it is worth is judged where a request asks
  // for something. No issuers are named, or clients with a certificate of a CA that was added later
  // would show none.
  requestCert: true,
  // Every connection proves anew that its client holds the key of the certificate that it shows,
  // with all that it presents beside: a resumed session would bring the leaf alone, and a
  // renegotiated one another client.
  // @guard certificate-without-its-key--ticket
  secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  rejectUnauthorized: false,
} as const
