import { expect, test } from 'vitest'

import type { purposeOids } from '../../src/pki/asn1/object-identifiers.ts'
import { missingPurposes, permitsPurpose } from '../../src/pki/verify/key-purposes.ts'
import { makeCertificate, purposes } from './support/fixtures.ts'

type Usage = keyof typeof purposeOids

interface Permission {
  readonly servers: boolean
  readonly clients: boolean
}

test.each<[behavior: string, usages: Usage[], missing: string[], permitted: Permission]>([
  [
    'with serverAuth and clientAuth lacks neither by name, and is permitted for servers and clients',
    ['serverAuth', 'clientAuth'],
    [],
    { servers: true, clients: true },
  ],
  [
    'with serverAuth lacks clientAuth by name, and is permitted for servers only',
    ['serverAuth'],
    ['clientAuth'],
    { servers: true, clients: false },
  ],
  [
    'with clientAuth lacks serverAuth by name, and is permitted for clients only',
    ['clientAuth'],
    ['serverAuth'],
    { servers: false, clients: true },
  ],
  [
    'with anyExtendedKeyUsage lacks serverAuth and clientAuth by name, but is permitted for servers and clients',
    ['any'],
    ['serverAuth', 'clientAuth'],
    { servers: true, clients: true },
  ],
  [
    'without extended key usages lacks none, and is permitted for servers and clients',
    [],
    [],
    { servers: true, clients: true },
  ],
])('a certificate %s', (_behavior, usages, missing, permitted) => {
  const extensions = usages.length === 0 ? [] : [purposes(...usages)]
  const { certificate } = makeCertificate({ name: 'router', extensions })
  expect(missingPurposes(certificate, ['serverAuth', 'clientAuth'])).toEqual(missing)
  expect({
    servers: permitsPurpose(certificate, 'serverAuth'),
    clients: permitsPurpose(certificate, 'clientAuth'),
  }).toEqual(permitted)
})
