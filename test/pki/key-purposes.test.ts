import { expect, test } from 'vitest'

import type { purposeOids } from '../../src/pki/asn1/object-identifiers.ts'
import { missingPurposes, permitsPurpose } from '../../src/pki/verify/key-purposes.ts'
import { makeCertificate, purposes } from './support/fixtures.ts'

interface Example {
  readonly usages: readonly (keyof typeof purposeOids)[]
  readonly missing: readonly string[]
  readonly permitted: readonly [forServers: boolean, forClients: boolean]
}

test.each<Example>([
  { usages: ['serverAuth', 'clientAuth'], missing: [], permitted: [true, true] },
  { usages: ['serverAuth'], missing: ['clientAuth'], permitted: [true, false] },
  { usages: ['clientAuth'], missing: ['serverAuth'], permitted: [false, true] },
  { usages: ['any'], missing: ['serverAuth', 'clientAuth'], permitted: [true, true] },
  { usages: [], missing: [], permitted: [true, true] },
])(
  'a certificate with the extended key usages $usages (none: without the extension) lacks $missing by name, and permits servers and clients: $permitted',
  ({ usages, missing, permitted }) => {
    const extensions = usages.length === 0 ? [] : [purposes(...usages)]
    const { certificate } = makeCertificate({ name: 'router', extensions })
    expect(missingPurposes(certificate, ['serverAuth', 'clientAuth'])).toEqual(missing)
    expect([
      permitsPurpose(certificate, 'serverAuth'),
      permitsPurpose(certificate, 'clientAuth'),
    ]).toEqual(permitted)
  },
)
