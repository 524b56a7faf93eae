import { expect, test } from 'vitest'

import {
  createIssuingAuthority,
  issueLeaf,
  validityFrom,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { type Rehearsed, rehearseHandshake } from '../../src/pki/verify/handshake-rehearsal.ts'
import { newCa } from '../support/authorities.ts'

// Goal: what TLS would refuse on the network is refused in memory before, in each of the two directions.

const DAY_MS = 24 * 60 * 60_000
const validity = validityFrom(Date.now(), DAY_MS)
const root = await newCa('root', Date.now())
const issuing = await createIssuingAuthority({ commonName: 'issuing', root, validity })

async function rehearsed(
  changes: Partial<Rehearsed & { usages: readonly ('client' | 'server')[] }> = {},
) {
  const { usages = ['server', 'client'], ...rest } = changes
  const leaf = await issueLeaf({
    issuer: issuing,
    commonName: 'ctrl1',
    uris: [],
    validity,
    usages,
    hosts: ['ctrl1.example', '192.0.2.7'],
  })
  return await rehearseHandshake({
    ...leaf,
    caPem: root.certificatePem,
    host: 'ctrl1.example',
    isMutual: true,
    ...rest,
  })
}

test('a certificate for both sides passes, by name and by address', async () => {
  expect(await rehearsed()).toBeNull()
  expect(await rehearsed({ host: '192.0.2.7' })).toBeNull()
})

test('one that lacks a usage, a name, or an issuer is refused with the reason of the library', async () => {
  expect(await rehearsed({ usages: ['server'] })).toMatch(/purpose/i)
  expect(await rehearsed({ usages: ['client'] })).toMatch(/purpose/i)
  expect(await rehearsed({ host: 'other.example' })).toMatch(/altnames/)
  const other = await newCa('other', Date.now())
  expect(await rehearsed({ caPem: other.certificatePem })).toMatch(/unable to get/)
  expect(await rehearsed({ caPem: null, isMutual: false })).toMatch(/unable to get/)
  const [, intermediate] = parseCertificates(
    (
      await issueLeaf({
        issuer: issuing,
        commonName: 'a',
        uris: [],
        hosts: [],
        validity,
        usages: ['client'],
      })
    ).certificatePem,
  )
  expect(await rehearsed({ caPem: intermediate?.pem ?? '' })).toMatch(/unable to get/)
})

test('a server alone needs no client usage', async () => {
  expect(await rehearsed({ usages: ['server'], isMutual: false })).toBeNull()
})

test('a key of another certificate is refused', async () => {
  expect(await rehearsed({ privateKeyPem: issuing.privateKeyPem })).toMatch(/key values mismatch/)
})
