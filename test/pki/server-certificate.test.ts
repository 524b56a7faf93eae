import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { issueLeaf, validityStartingAt } from '../../src/pki/authority/authority.ts'
import { readServerCertificate } from '../../src/pki/verify/server-certificate.ts'
import { newCa } from '../support/authorities.ts'

// Goal: if an operator configures a CA certificate as server certificate, the message contains a
// remedy that depends on the rest of the file.

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-server-certificate-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

test('a CA certificate is refused as a server certificate, with a remedy that depends on how many certificates the file contains', async () => {
  const ca = await newCa('self-signed', Date.now())
  const validity = validityStartingAt(Date.now(), 3_600_000)
  const more = { uris: [], hosts: ['a.test'], usages: ['server' as const], validity }
  const leaf = await issueLeaf({ issuer: ca, commonName: 'a.test', ...more })
  const refusalOf = (pem: string): string => {
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    writeFileSync(cert, pem)
    writeFileSync(key, ca.privateKeyPem, { mode: 0o600 })
    try {
      readServerCertificate({ cert, key }, Date.now())
      return 'accepted'
    } catch (error) {
      return (error as Error).message.replace(`${cert}: `, '')
    }
  }
  expect(refusalOf(ca.certificatePem)).toBe(
    "it is a CA certificate and the only one in the file; have a CA issue a server certificate, or create a self-signed one that is no CA certificate (openssl req -x509 -addext 'basicConstraints=critical,CA:FALSE')",
  )
  expect(refusalOf(ca.certificatePem + leaf.certificatePem)).toBe(
    'it is a CA certificate and the first in the file; put the server certificate first',
  )
})
