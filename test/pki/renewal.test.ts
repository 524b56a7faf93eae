import { beforeAll, describe, expect, test } from 'vitest'

import { requirePresent } from '../../src/lib/assert.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
  issueControllerCertificateForKey,
  LEAF_LIFETIME_MS,
  renewIssuingAuthority,
  type ValidityPeriod,
} from '../../src/pki/authority/authority.ts'
import {
  type Certificate,
  checkCertificateChain,
  checkKeyMatches,
  parseCertificates,
} from '../../src/pki/certificate.ts'
import {
  certificateHealth,
  certificateLifetime,
  expirySentence,
  isIssuerName,
  missingHosts,
  renewalReason,
  limitValidity,
} from '../../src/pki/authority/renewal.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const SECOND_MS = 1000
/** Midnight; all times below are whole days after this. */
const start = Date.UTC(2030, 0, 1)
const at = (days: number): number => start + days * DAY_MS
const days = (from: number, to: number): ValidityPeriod => ({
  notBeforeMs: at(from),
  notAfterMs: at(to),
})

let root: CertificateWithKey
let issuing: CertificateWithKey
let anchors: Certificate[]

async function leafOf(
  validity: ValidityPeriod,
  options: { issuer?: CertificateWithKey; hosts?: readonly string[] } = {},
): Promise<[Certificate, ...Certificate[]]> {
  const { certificatePem } = await issueControllerCertificate({
    issuer: options.issuer ?? issuing,
    trustDomain: 'test.example',
    id: 'ctrl1',
    hosts: options.hosts ?? ['localhost', '127.0.0.1'],
    validity,
  })
  return parseCertificates(certificatePem)
}

beforeAll(async () => {
  root = await createRootAuthority({ commonName: 'test root', validity: days(0, 3650) })
  issuing = await createIssuingAuthority({
    commonName: 'test issuing',
    root,
    validity: days(0, 1825),
  })
  anchors = parseCertificates(root.certificatePem)
})

describe('The three alarm times before a certificate expires', () => {
  test.each([
    [31, 0, 'none'],
    [30, SECOND_MS, 'none'],
    [30, 0, 'soon'],
    [7, SECOND_MS, 'soon'],
    [7, 0, 'urgent'],
    [1, SECOND_MS, 'urgent'],
    [1, 0, 'critical'],
    [0, SECOND_MS, 'critical'],
    [0, 0, 'critical'],
    [0, -SECOND_MS, 'expired'],
  ] as const)(
    'put a leaf with %s days and %s ms left at the alarm level %s',
    async (left, ms, level) => {
      const [leaf] = await leafOf(days(0, 365))
      const life = certificateLifetime(leaf, at(365) - left * DAY_MS - ms)
      expect(life.level).toBe(level)
      expect(expirySentence(life, true) === null).toBe(level === 'none')
    },
  )

  test('also apply to the issuing CA and the root, each with its own remedy', async () => {
    const chain = await leafOf(days(1790, 1820))
    const health = certificateHealth({ chain, anchors, nowMs: at(1796) })
    expect(health.authorities.map(({ kind, level }) => [kind, level])).toEqual([
      ['issuing', 'soon'],
      ['root', 'none'],
    ])
    const authority = requirePresent(health.authorities[0], 'the issuing authority')
    expect(expirySentence(authority, true)).toContain("'flotilla pki renew-issuing'")
    const last = certificateLifetime(requirePresent(anchors[0], 'the root'), at(3649))
    expect(last.level).toBe('critical')
    expect(expirySentence(last, true)).toContain('plan a new root')
  })

  test('are fractions of the lifetime for a short-lived leaf, and come after the time at which a leaf is renewed', async () => {
    const [leaf] = await leafOf(days(0, 12))
    const levelWith = (left: number): string => certificateLifetime(leaf, at(12 - left)).level
    expect([12, 4, 3.01].map(levelWith)).toEqual(['none', 'none', 'none'])
    expect([3, 1.5, 0.75].map(levelWith)).toEqual(['soon', 'urgent', 'critical'])
    expect(certificateLifetime(leaf, at(0)).renewAtMs).toBe(at(8))
  })

  test('lead to a message with the remedy: the command flotilla pki renew, or a renewal by the issuer', async () => {
    const [leaf] = await leafOf(days(0, 365))
    const life = certificateLifetime(leaf, at(360))
    expect(expirySentence(life, true)).toContain(
      'of controller ctrl1 expires within 7 days, at 2031-01-01T00:00:00Z',
    )
    expect(expirySentence(life, true)).toContain("'flotilla pki renew'")
    expect(expirySentence(life, false)).toContain('have its issuer renew it')
  })
})

describe('The health report of a controller’s certificate', () => {
  test('contains the whole days that are left, and the worst alarm level in the certificate chain', async () => {
    const chain = await leafOf(days(1460, 1825))
    const health = certificateHealth({ chain, anchors, nowMs: at(1819) - 1 })
    expect(health.isTrusted).toBe(true)
    expect([health.leaf, ...health.authorities].map(({ daysLeft }) => daysLeft)).toEqual([
      6, 6, 1831,
    ])
    expect(health.level).toBe('urgent')
    expect(certificateHealth({ chain, anchors, nowMs: at(1826) }).leaf.daysLeft).toBe(-1)
  })

  test('reports a chain that does not lead to a trust anchor', async () => {
    const other = await createRootAuthority({ commonName: 'test root', validity: days(0, 3650) })
    const chain = await leafOf(days(0, 365))
    const foreign = parseCertificates(other.certificatePem)
    expect(certificateHealth({ chain, anchors: foreign, nowMs: at(1) }).isTrusted).toBe(false)
  })
})

describe('A controller’s leaf certificate is renewed', () => {
  const reasonAt = (
    chain: readonly [Certificate, ...Certificate[]],
    nowMs: number,
    options: { issuer?: CertificateWithKey; hosts?: readonly string[] } = {},
  ): string | null =>
    renewalReason({
      chain,
      issuingPem: (options.issuer ?? issuing).certificatePem,
      hosts: options.hosts ?? ['localhost'],
      nowMs,
    })

  test('when a third of its lifetime is left, not earlier', async () => {
    const chain = await leafOf(days(0, 300))
    expect(reasonAt(chain, at(200) - 1)).toBeNull()
    expect(reasonAt(chain, at(200))).toBe('due')
    expect(reasonAt(chain, at(301))).toBe('due')
  })

  test('immediately if it lacks a configured host, or is not yet valid after a clock error', async () => {
    const chain = await leafOf(days(0, 300))
    expect(reasonAt(chain, at(1), { hosts: ['127.0.0.1', 'new.example'] })).toBe('missing-host')
    expect(missingHosts(chain[0], ['localhost', '127.0.0.1', '::1', 'new.example'])).toEqual([
      '::1',
      'new.example',
    ])
    expect(reasonAt(chain, at(0) - 1)).toBe('not-yet-valid')
  })

  test('immediately if its CA has a new key, or a new certificate for the same key', async () => {
    const chain = await leafOf(days(0, 300))
    for (const keeps of [true, false]) {
      const next = await renewed(keeps)
      expect(isIssuerName(chain[0], next.certificatePem)).toBe(true)
      expect(reasonAt(chain, at(1), { issuer: next })).toBe('new-authority')
      const under = await leafOf(days(0, 300), { issuer: next })
      expect(reasonAt(under, at(1), { issuer: next })).toBeNull()
      expect(() => checkCertificateChain(under, anchors, at(1))).not.toThrow()
    }
  })

  test('not if the leaf expires together with its CA, because a new leaf would not be valid for longer', async () => {
    const [issuer] = parseCertificates(issuing.certificatePem)
    const validity = limitValidity(issuer, at(1725), LEAF_LIFETIME_MS)
    expect(validity.notAfterMs).toBe(issuer.notAfterMs)
    const chain = await leafOf(validity)
    expect(reasonAt(chain, at(1800))).toBeNull()
    expect(reasonAt(chain, at(1824))).toBeNull()
  })

  async function renewed(keepsKey: boolean): Promise<CertificateWithKey> {
    const [before] = parseCertificates(issuing.certificatePem)
    const spki = before.native.publicKey.export({ type: 'spki', format: 'der' })
    const next = await renewIssuingAuthority({
      root,
      presentPem: issuing.certificatePem,
      publicKeySpki: keepsKey ? Uint8Array.from(spki) : null,
      validity: days(0, 2000),
    })
    expect(next.privateKeyPem === null).toBe(keepsKey)
    const privateKeyPem = next.privateKeyPem ?? issuing.privateKeyPem
    checkKeyMatches(parseCertificates(next.certificatePem)[0], privateKeyPem)
    return { certificatePem: next.certificatePem, privateKeyPem }
  }
})

test('a leaf that was issued before its CA’s certificate was renewed is valid with the old and with the new CA certificate in its chain', async () => {
  const [before] = parseCertificates(issuing.certificatePem)
  const chain = await leafOf(days(0, 300))
  const spki = before.native.publicKey.export({ type: 'spki', format: 'der' })
  const kept = await renewIssuingAuthority({
    root,
    presentPem: issuing.certificatePem,
    publicKeySpki: Uint8Array.from(spki),
    validity: days(0, 2000),
  })
  const [after] = parseCertificates(kept.certificatePem)
  expect(() => checkCertificateChain(chain, anchors, at(100))).not.toThrow()
  expect(() => checkCertificateChain([chain[0], after], anchors, at(100))).not.toThrow()
})

test('if a CA has two certificates for one key, the currently valid one is used, in whatever order they are listed', async () => {
  const [long] = await leafOf(days(0, 300))
  const [before] = parseCertificates(issuing.certificatePem)
  const spki = Uint8Array.from(before.native.publicKey.export({ type: 'spki', format: 'der' }))
  const { certificatePem } = await renewIssuingAuthority({
    root,
    presentPem: issuing.certificatePem,
    publicKeySpki: spki,
    validity: days(0, 10),
  })
  const [ended] = parseCertificates(certificatePem)
  expect(() => checkCertificateChain([long, ended, before], anchors, at(100))).not.toThrow()
  expect(() => checkCertificateChain([long, before, ended], anchors, at(100))).not.toThrow()
  expect(() => checkCertificateChain([long, ended], anchors, at(100))).toThrow('it expired at')
})

test('a leaf can be issued for a public key, so that the private key never leaves its controller', async () => {
  const [leaf] = await leafOf(days(0, 300))
  const certificatePem = await issueControllerCertificateForKey({
    issuer: issuing,
    trustDomain: 'test.example',
    id: 'ctrl1',
    hosts: ['localhost'],
    publicKeySpki: Uint8Array.from(leaf.native.publicKey.export({ type: 'spki', format: 'der' })),
    validity: days(0, 600),
  })
  const [next] = parseCertificates(certificatePem)
  expect(next.publicKeySha256).toEqual(leaf.publicKeySha256)
  expect(next.sha256).not.toBe(leaf.sha256)
})
