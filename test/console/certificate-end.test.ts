import { expect, test } from 'vitest'

import {
  certificateEnd,
  certificateSubject,
} from '../../src/console/pages/records/certificate-end.ts'
import { clientCertificate, newCa } from '../support/authorities.ts'

// Goal: authenticators and CAs show the subject of their certificate and when it expires.

test.each(['2027-11-29T23:50:12.000Z', '2049-12-31T23:59:59.000Z', '2060-01-01T00:00:00.000Z'])(
  'the end of a certificate that expires at %s is read from its PEM text',
  async (end) => {
    const notBeforeMs = Date.parse('2026-11-29T00:00:00Z')
    const issuer = await newCa('ca', notBeforeMs)
    const validity = { notBeforeMs, notAfterMs: Date.parse(end) }
    const pem = await clientCertificate(issuer, 'laptop', validity)
    expect(certificateEnd(pem)).toBe(end)
    expect(certificateEnd(pem + issuer.certificatePem)).toBe(end)
    expect(certificateSubject(pem)).toBe('CN=laptop')
    expect(certificateSubject(issuer.certificatePem)).toBe('CN=ca')
  },
)

test.each([
  undefined,
  '',
  '-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----',
  '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
  '-----BEGIN CERTIFICATE-----\nMIQAAAAAMIQ=\n-----END CERTIFICATE-----',
])('no end is read from the text %j', (pem) => {
  expect(certificateEnd(pem)).toBe(null)
  expect(certificateSubject(pem)).toBe('')
})
