import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { identityFileText } from '../../src/cli/enroll/identity-file.ts'
import { IdentityCertificateFile } from '../../src/cli/tunnel/identity-certificate-file.ts'
import { readIdentityFile } from '../../src/cli/tunnel/identity-file.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { newCa } from '../support/authorities.ts'

// The attack: a controller responds to the renewal of an identity's certificate with a certificate
// for another key.

let folder: string
let root: CertificateWithKey
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-renewed-'))
  root = await newCa('network root', Date.now())
})
afterEach(() => rmSync(folder, { recursive: true }))

const leafKey = (): Promise<CertificateWithKey> =>
  issueLeaf({
    issuer: root,
    commonName: 'laptop',
    uris: [],
    hosts: [],
    usages: ['client'],
    validity: validityStartingAt(Date.now(), 3_600_000),
  })

test('a renewed certificate for another key is not stored, so it is neither confirmed nor used', async () => {
  const path = join(folder, 'laptop.json')
  const own = await leafKey()
  const identity = { origin: 'https://ctrl1.test:1280', ...own, caPem: root.certificatePem }
  writeFileSync(path, identityFileText(identity, [identity.origin]), { mode: 0o600 })
  const certificate = new IdentityCertificateFile(path, readIdentityFile(path))
  const { certificatePem } = await leafKey()
  expect(() => certificate.store(certificatePem)).toThrow(
    'the private key does not belong to the certificate',
  )
  certificate.adopt()
  expect([certificate.renewed, certificate.credential.certificatePem]).toEqual([
    null,
    own.certificatePem,
  ])
  expect(readIdentityFile(path)).toMatchObject(own)
})
