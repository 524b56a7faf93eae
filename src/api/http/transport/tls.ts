import { constants } from 'node:crypto'

/**
 * TLS settings of the HTTPS listeners: at least version 1.2, and only with forward secrecy and
 * authenticated encryption (RFC 9325, 4.2). The three TLS 1.3 suites come first.
 */
export const listenerTlsOptions = {
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
  // Client certificates are optional; an operation that needs a certificate checks it. The server
  // sends no list of accepted issuers: a client whose certificate is from a CA that was added later
  // would otherwise send no certificate.
  requestCert: true,
  // A client with a certificate must prove possession of its key and send the full chain on each
  // connection. A resumed TLS session would contain only the leaf, and a renegotiation could change
  // the client certificate (ADR 61).
  // @guard certificate-without-its-key--ticket
  secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  rejectUnauthorized: false,
} as const
