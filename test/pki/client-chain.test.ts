import { describe, expect, test } from 'vitest'

import { derTag, type DerTree, encodeTagged } from '../../src/pki/asn1/der.ts'
import { distinguishedNameFromCommonName } from '../../src/pki/asn1/distinguished-name.ts'
import { encodeExtension } from '../../src/pki/asn1/extensions.ts'
import {
  type Certificate,
  parseCertificate,
  parsePresentedAuthority,
  parsePresentedLeaf,
} from '../../src/pki/certificate.ts'
import {
  type ClientChainResult,
  clientChainLimits,
  type ClientChainInput,
  verifyClientChain,
} from '../../src/pki/verify/client-chain.ts'
import {
  alternativeNames,
  basicConstraints,
  DAY_MS,
  keyUsage,
  type Made,
  makeAuthority,
  makeCertificate,
  makeClient,
  nameConstraints,
  newEcKey,
  newEdKey,
  newRsaKey,
  purposes,
  rsaPss,
  sha1WithRsa,
  type SubtreeList,
  testNowMs,
} from './support/fixtures.ts'

function verify(
  chain: readonly [Made, ...Made[]],
  anchors: readonly Made[],
  changes: Partial<ClientChainInput> = {},
): ClientChainResult {
  const [leaf, ...others] = chain.map(({ certificate }) => certificate)
  return verifyClientChain({
    chain: [leaf as Certificate, ...others],
    anchors: anchors.map(({ certificate }) => certificate),
    nowMs: testNowMs,
    requiresClientAuth: true,
    leafTime: 'enforced',
    ...changes,
  })
}

const path = (...made: readonly Made[]): object => ({
  ok: true,
  path: made.map(({ certificate }) => certificate),
})
const refused = (reason: string): object => ({ ok: false, reason: expect.stringContaining(reason) })

const root = makeAuthority('root')
const middle = makeAuthority('middle', { issuer: root })
const low = makeAuthority('low', { issuer: middle })
const leaf = makeClient('client', low)

describe('A client’s certificate chain', () => {
  test('leads to a trust anchor, in whatever order the intermediates are presented', () => {
    for (const others of [
      [middle, low],
      [low, middle],
      [low, low, middle, leaf, root],
    ]) {
      expect(verify([leaf, ...others], [root])).toMatchObject(path(leaf, low, middle, root))
    }
  })

  test('ends at the first trust anchor that it reaches, which need not be a root', () => {
    expect(verify([leaf], [low])).toMatchObject(path(leaf, low))
    expect(verify([leaf, low, middle], [low, root])).toMatchObject(path(leaf, low))
    expect(verify([leaf, low, middle], [root, low])).toMatchObject(path(leaf, low, middle, root))
  })

  test('is refused if an intermediate is missing, or if the trust anchor is another CA with the same name', () => {
    const none = refused('does not lead to any of the 1 CA certificates')
    expect(verify([leaf, low], [root])).toMatchObject(none)
    expect(verify([leaf, middle], [root])).toMatchObject(none)
    expect(verify([leaf, low, middle], [makeAuthority('other')])).toMatchObject(none)
    const namesake = makeAuthority('root')
    expect(verify([leaf, low, middle], [namesake])).toMatchObject(refused('not signed by'))
    expect(verify([leaf, low, middle], [namesake, root])).toMatchObject({ ok: true })
  })

  test('is refused with a forged intermediate, even if the genuine intermediate was accepted before', () => {
    expect(verify([leaf, low, middle], [root])).toMatchObject({ ok: true })
    const forged = makeAuthority('middle', { issuer: makeAuthority('root') })
    const lower = makeAuthority('low', { issuer: forged })
    const client = makeClient('client', lower)
    const refusal = refused('not signed by')
    expect(verify([client, lower, forged], [root])).toMatchObject(refusal)
    expect(verify([client, low, middle], [root])).toMatchObject(refusal)
    expect(verify([leaf, low, middle], [root])).toMatchObject({ ok: true })
  })

  test('is verified without parsing the same CA certificate again, because the last 64 parsed CA certificates are cached', () => {
    const { der } = low.certificate
    const kept = parsePresentedAuthority(der)
    expect(kept).toEqual(parseCertificate(der))
    expect(parsePresentedAuthority(Uint8Array.from(der))).toBe(kept)
    for (let count = 0; count < 64; count += 1) {
      parsePresentedAuthority(makeAuthority(`authority ${count}`).certificate.der)
    }
    expect(parsePresentedAuthority(der)).not.toBe(kept)
  })

  test('is verified without parsing the leaf of a returning client again, but the signature of the leaf is checked for each issuer', () => {
    const { der } = leaf.certificate
    const kept = parsePresentedLeaf(der)
    expect(kept).toEqual(parseCertificate(der))
    expect(parsePresentedLeaf(Uint8Array.from(der))).toBe(kept)
    const known = { ...leaf, certificate: kept }
    for (const _ of [1, 2]) {
      expect(verify([known], [low])).toMatchObject({ ok: true })
      expect(verify([known], [makeAuthority('low')])).toMatchObject(refused('not signed by'))
    }
    const damaged = Uint8Array.from(der)
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1
    const forged = { ...leaf, certificate: parsePresentedLeaf(damaged) }
    expect(verify([forged], [low])).toMatchObject(refused('not signed by'))
  })

  test('is not trusted because of a root that the client presents, nor because of the leaf itself', () => {
    expect(verify([leaf, low, middle, root], [makeAuthority('other')])).toMatchObject({ ok: false })
    const own = makeCertificate({ name: 'own' })
    expect(verify([own], [own])).toMatchObject({ ok: false })
    expect(verify([middle], [root])).toMatchObject(refused('is that of a CA'))
  })

  test.each([
    ['EC P-384', newEcKey('P-384'), undefined],
    ['EC P-521', newEcKey('P-521'), undefined],
    ['RSA', newRsaKey(), undefined],
    ['RSA-PSS', newRsaKey(), rsaPss('sha256', '608648016503040201')],
    ['Ed25519', newEdKey(), undefined],
  ])('may be signed with the algorithm %s', (_type, keys, signing) => {
    const made = signing === undefined ? { keys } : { keys, signing }
    const authority = makeAuthority('of that key', made)
    const client = makeClient('client', authority, signing === undefined ? {} : { signing })
    expect(verify([client], [authority])).toMatchObject(path(client, authority))
  })
})

describe('A CA certificate in a client’s chain', () => {
  const without = (extensions: readonly DerTree[], reason: string): void => {
    const fake = makeCertificate({ name: 'fake', issuer: root, extensions })
    const client = makeClient('client', fake)
    expect(verify([client, fake], [root])).toMatchObject(refused(reason))
    expect(verify([client], [fake])).toMatchObject(refused(reason))
  }

  test('must have the CA flag in its basic constraints', () => {
    without([], 'is not a CA certificate')
    without([basicConstraints(false)], 'is not a CA certificate')
    without([keyUsage(0x04)], 'is not a CA certificate')
  })

  test('must allow keyCertSign if it has the key usage extension', () => {
    without([basicConstraints(true), keyUsage(0x80)], 'may not sign certificates')
    const old = makeCertificate({ name: 'old', issuer: root, extensions: [basicConstraints(true)] })
    expect(verify([makeClient('client', old), old], [root])).toMatchObject({ ok: true })
  })

  test('invalidates the chain if it is expired or not yet valid, even if it is the trust anchor', () => {
    const past = { notBeforeMs: testNowMs - 2 * DAY_MS, notAfterMs: testNowMs - 1000 }
    const future = { notBeforeMs: testNowMs + 1000, notAfterMs: testNowMs + DAY_MS }
    for (const [times, reason] of [
      [past, 'expired at 2030-01-14T23:59:59Z'],
      [future, 'is not valid before 2030-01-15T00:00:01Z'],
    ] as const) {
      const off = makeAuthority('off', { issuer: root, ...times })
      expect(verify([makeClient('client', off), off], [root])).toMatchObject(refused(reason))
      const anchor = makeAuthority('anchor', times)
      expect(verify([makeClient('client', anchor)], [anchor])).toMatchObject(refused(reason))
    }
  })

  test('is refused if its key is too small, or if it is signed with SHA-1', () => {
    const small = makeAuthority('small', { issuer: root, keys: newRsaKey(1024) })
    expect(verify([makeClient('client', small), small], [root])).toMatchObject(
      refused('a key of no kind allowed'),
    )
    const rsaRoot = makeAuthority('rsa root', { keys: newRsaKey(), signing: sha1WithRsa })
    const weak = makeAuthority('weak', { issuer: rsaRoot, signing: sha1WithRsa })
    expect(verify([makeClient('client', weak), weak], [rsaRoot])).toMatchObject(
      refused('signed with SHA-1, which is broken'),
    )
    const client = makeClient('client', rsaRoot, { signing: sha1WithRsa })
    expect(verify([client], [rsaRoot])).toMatchObject(refused('SHA-1'))
    // The anchor's own signature is not checked.
    expect(verify([makeClient('client', rsaRoot)], [rsaRoot])).toMatchObject({ ok: true })
  })

  test('is refused if it has an unknown critical extension, while an unknown non-critical extension is ignored', () => {
    const extension = (isCritical: boolean): DerTree =>
      encodeExtension('2a0304', isCritical, encodeTagged(derTag.null))
    for (const isCritical of [true, false]) {
      const options = { issuer: root, extensions: [extension(isCritical)] }
      const odd = makeAuthority('odd', options)
      const expected = isCritical ? refused('critical extension') : { ok: true }
      expect(verify([makeClient('client', odd), odd], [root])).toMatchObject(expected)
      const client = makeClient('client', root, { extensions: [extension(isCritical)] })
      expect(verify([client], [root])).toMatchObject(expected)
    }
  })
})

describe('The path length constraint of a CA', () => {
  test('counts the CAs between the constrained CA and the leaf', () => {
    const top = makeAuthority('top', { pathLength: 1 })
    const one = makeAuthority('one', { issuer: top })
    const two = makeAuthority('two', { issuer: one })
    expect(verify([makeClient('client', one), one], [top])).toMatchObject({ ok: true })
    expect(verify([makeClient('client', two), one, two], [top])).toMatchObject(
      refused('allows 1 authorities below it, and there are 2'),
    )
  })

  test('does not count self-issued CAs', () => {
    const top = makeAuthority('top', { pathLength: 0 })
    const renewed = makeAuthority('top', { issuer: top })
    const client = makeClient('client', renewed)
    expect(verify([client, renewed], [top])).toMatchObject(path(client, renewed, top))
    const foreign = makeAuthority('foreign', { issuer: renewed })
    expect(verify([makeClient('client', foreign), foreign, renewed], [top])).toMatchObject({
      ok: false,
    })
  })
})

describe('The extended key usage of a client’s chain', () => {
  test('is checked, if the caller requests it, in the leaf and the CAs; a certificate without the extension is allowed for every purpose', () => {
    const server = makeCertificate({
      name: 's',
      issuer: root,
      extensions: [purposes('serverAuth')],
    })
    expect(verify([server], [root])).toMatchObject(refused('without clientAuth'))
    expect(verify([server], [root], { requiresClientAuth: false })).toMatchObject({ ok: true })
    const plain = makeCertificate({ name: 'plain', issuer: root })
    expect(verify([plain], [root])).toMatchObject({ ok: true })
    const any = makeCertificate({ name: 'any', issuer: root, extensions: [purposes('any')] })
    expect(verify([any], [root])).toMatchObject({ ok: true })
    const extensions = [purposes('serverAuth')]
    const narrow = makeAuthority('narrow', { issuer: root, extensions })
    expect(verify([makeClient('client', narrow), narrow], [root])).toMatchObject(
      refused('without clientAuth'),
    )
  })
})

test('the caller determines whether an expired or not yet valid leaf is refused or only reported', () => {
  const past = { notBeforeMs: testNowMs - 2 * DAY_MS, notAfterMs: testNowMs - 1000 }
  const future = { notBeforeMs: testNowMs + 1000, notAfterMs: testNowMs + DAY_MS }
  const leafTime = 'reported'
  for (const [times, time, reason] of [
    [past, 'expired', 'expired at'],
    [future, 'not-yet-valid', 'is not valid before'],
  ] as const) {
    const client = makeClient('client', root, times)
    expect(verify([client], [root])).toMatchObject(refused(reason))
    expect(verify([client], [root], { leafTime })).toMatchObject({ ok: true, leafTime: time })
  }
  const good = makeClient('client', root)
  expect(verify([good], [root], { leafTime })).toMatchObject({ ok: true, leafTime: 'valid' })
})

describe('A leaf in a client’s chain', () => {
  test('is refused if its key is too small', () => {
    const client = makeClient('client', root, { keys: newRsaKey(1024) })
    expect(verify([client], [root])).toMatchObject(refused('a key of no kind allowed'))
  })

  test('is refused if another CA with the name of the trust anchor signed it', () => {
    const other = makeAuthority('root')
    const client = makeClient('client', other)
    expect(verify([client], [root])).toMatchObject(refused('not signed by "CN=root"'))
  })
})

describe('The work for verifying a client’s certificate chain', () => {
  const keys = Array.from({ length: 6 }, () => newEcKey())
  /** Authorities of which each has signed all others. */
  const crossed = keys.flatMap((own, to) =>
    keys.flatMap((issuerKeys, from) => {
      if (from === to) return []
      const issuer = makeAuthority(`ca${from}`, { keys: issuerKeys })
      return [makeAuthority(`ca${to}`, { keys: own, issuer })]
    }),
  )
  const [own = newEcKey()] = keys
  const issuer = makeAuthority('ca0', { keys: own })

  test('is limited if CAs are cross-signed, whichever CA is trusted', () => {
    const client = makeClient('client', issuer)
    const presented = crossed.slice(0, clientChainLimits.presentedMax - 1)
    expect(verify([client, ...presented], [root])).toMatchObject({ ok: false })
    expect(verify([client, ...presented], [issuer])).toMatchObject(path(client, issuer))
    // The trust anchor is above all of them, and each path to it fails at the leaf.
    const wrong = makeClient('client', makeAuthority('ca0'))
    const anchors = [makeAuthority('ca5', { keys: keys[5] ?? own })]
    expect(verify([wrong, ...presented], anchors)).toMatchObject({ ok: false })
  })

  test('is avoided if no certificate of the chain names the trust anchor as its issuer', () => {
    const client = makeClient('client', issuer)
    let looked = 0
    const anchor = new Proxy(root.certificate, {
      get(target, name) {
        if (name === 'native') looked += 1
        return Reflect.get(target, name) as unknown
      },
    })
    const presented = crossed.slice(0, 15).map(({ certificate }) => certificate)
    const chain: [Certificate, ...Certificate[]] = [client.certificate, ...presented]
    const question = { nowMs: testNowMs, requiresClientAuth: true, leafTime: 'enforced' } as const
    expect(verifyClientChain({ ...question, chain, anchors: [anchor] })).toMatchObject({
      ok: false,
    })
    expect(looked).toBe(0)
  })

  test('is limited if the chain is too deep or too long', () => {
    let above = root
    const presented: Made[] = []
    for (let at = 0; at < clientChainLimits.depthMax; at += 1) {
      above = makeAuthority(`level ${at}`, { issuer: above })
      presented.push(above)
    }
    expect(verify([makeClient('client', above), ...presented], [root])).toMatchObject({ ok: false })
    const [first] = presented
    const near = makeClient('client', first ?? root)
    expect(verify([near, ...presented], [root])).toMatchObject({ ok: true })
    const many = Array.from({ length: clientChainLimits.presentedMax }, () => low)
    expect(verify([leaf, ...many], [root])).toMatchObject(refused('more certificates'))
  })
})

describe('X.509 name constraints', () => {
  const ip = (...bytes: readonly number[]): Buffer => Buffer.from(bytes)
  const names = alternativeNames({
    dnsNames: ['host.good.example'],
    emails: ['ann@good.example'],
    uris: ['spiffe://good.example/x'],
    ipAddresses: [ip(10, 1, 2, 3)],
  })
  const judge = (
    permitted: SubtreeList,
    excluded: SubtreeList,
    named = names,
  ): ClientChainResult => {
    const extensions = [nameConstraints(permitted, excluded)]
    const bound = makeAuthority('bound', { issuer: root, extensions })
    const client = makeClient('client', bound, { extensions: [named] })
    const through = makeAuthority('through', { issuer: bound })
    const far = makeClient('client', through, { extensions: [named] })
    const answer = verify([client, bound], [root])
    // Constraints of all authorities apply to the leaf, also those of a trust anchor.
    expect(verify([far, through, bound], [root]).ok).toBe(answer.ok)
    expect(verify([client], [bound]).ok).toBe(answer.ok)
    return answer
  }

  test.each<[string, SubtreeList, SubtreeList]>([
    ['a host in a permitted domain', [['dns', 'good.example']], [['dns', 'bad.example']]],
    ['every host if the empty domain is permitted', [['dns', '']], []],
    [
      'a host below a permitted domain',
      [['dns', '.good.example']],
      [['dns', '.host.good.example']],
    ],
    ['a host whose permitted domain differs only in case', [['dns', 'GOOD.example']], []],
    ['a permitted mailbox', [['email', 'ann@GOOD.example']], [['email', 'Ann@good.example']]],
    ['a mailbox at a permitted host', [['email', 'good.example']], [['email', '.good.example']]],
    ['a URI with a permitted host', [['uri', 'good.example']], [['uri', '.good.example']]],
    [
      'an address in a permitted network',
      [['ip', ip(10, 0, 0, 0, 255, 0, 0, 0)]],
      [['ip', ip(11, 0, 0, 0, 255, 0, 0, 0)]],
    ],
    [
      'names of types that the constraint does not mention',
      [['ip', ip(10, 0, 0, 0, 255, 0, 0, 0)]],
      [],
    ],
    [
      'a host in one of several permitted domains',
      [
        ['dns', 'x.example'],
        ['dns', 'good.example'],
      ],
      [],
    ],
  ])('allow %s', (_what, permitted, excluded) => {
    expect(judge(permitted, excluded)).toMatchObject({ ok: true })
  })

  test.each<[string, SubtreeList, SubtreeList]>([
    ['a host outside of the permitted domain', [['dns', 'ood.example']], []],
    ['a host above the only permitted domain', [['dns', 'x.host.good.example']], []],
    ['a host in an excluded domain', [], [['dns', 'good.example']]],
    [
      'a host in a domain that is permitted and excluded',
      [['dns', 'example']],
      [['dns', 'good.example']],
    ],
    ['every host if the empty domain is excluded', [], [['dns', '']]],
    ['a mailbox other than the permitted one', [['email', 'bob@good.example']], []],
    ['a mailbox at a host if only hosts below it are permitted', [['email', '.good.example']], []],
    ['a mailbox at an excluded host', [], [['email', 'good.example']]],
    ['a URI with a host other than the permitted one', [['uri', 'example']], []],
    ['a URI with a host if only hosts below it are permitted', [['uri', '.good.example']], []],
    ['an address outside of the permitted network', [['ip', ip(10, 0, 0, 0, 255, 255, 0, 0)]], []],
    ['an IPv4 address if only IPv6 networks are permitted', [['ip', Buffer.alloc(32)]], []],
    ['an address in an excluded network', [], [['ip', Buffer.alloc(8)]]],
  ])('refuse %s', (_what, permitted, excluded) => {
    expect(judge(permitted, excluded)).toMatchObject(
      refused('which the name constraints of an authority above it exclude'),
    )
  })

  test('cause a refusal if the certificate contains names that cannot be compared', () => {
    for (const [permitted, named] of [
      [['uri', 'good.example'], { uris: ['urn:x:y'] }],
      [['uri', 'good.example'], { uris: ['https://10.0.0.1/'] }],
      [['dns', 'good.example'], { dnsNames: ['.good.example'] }],
      [['email', 'good.example'], { emails: ['@good.example'] }],
    ] as const) {
      expect(judge([permitted], [], alternativeNames(named))).toMatchObject({ ok: false })
    }
  })

  test('exclude a wildcard name that covers an excluded host', () => {
    const wild = alternativeNames({ dnsNames: ['*.good.example'] })
    expect(judge([], [['dns', 'secret.good.example']], wild)).toMatchObject({ ok: false })
    expect(judge([], [['dns', 'x.secret.good.example']], wild)).toMatchObject({ ok: true })
  })

  test('apply to the subject, and also to an email address in the subject if there are no alternative names', () => {
    const attribute = (oid: string, text: string): Buffer =>
      encodeTagged(derTag.set, [derTag.sequence, oid, [derTag.utf8String, Buffer.from(text)]])
    const organization = attribute('55040a', 'Good  Inc')
    const above = encodeTagged(derTag.sequence, attribute('55040a', 'good inc'))
    const subjectOf = (...parts: readonly Buffer[]): Buffer =>
      encodeTagged(derTag.sequence, ...parts)
    const bound = (permitted: SubtreeList): Made =>
      makeAuthority('bound', { issuer: root, extensions: [nameConstraints(permitted)] })
    const judged = (by: Made, subject: Buffer): ClientChainResult =>
      verify([makeClient(subject, by), by], [root])
    const directory = bound([['directory', above]])
    expect(judged(directory, subjectOf(organization, attribute('550403', 'a')))).toMatchObject({
      ok: true,
    })
    expect(judged(directory, distinguishedNameFromCommonName('a').der)).toMatchObject({ ok: false })
    const mail = bound([['email', 'good.example']])
    const mailOid = '2a864886f70d010901'
    const mine = subjectOf(attribute(mailOid, 'ann@good.example'))
    expect(judged(mail, mine)).toMatchObject({ ok: true })
    const other = subjectOf(attribute(mailOid, 'ann@bad.example'))
    expect(judged(mail, other)).toMatchObject({ ok: false })
  })

  test('apply to intermediates, except self-issued intermediates', () => {
    const inside = encodeTagged(
      derTag.sequence,
      distinguishedNameFromCommonName('bound').der.subarray(2),
    )
    const extensions = [nameConstraints([['directory', inside]])]
    const bound = makeAuthority('top', { issuer: root, extensions })
    const renewed = makeAuthority('top', { issuer: bound })
    const client = makeClient('bound', renewed)
    expect(verify([client, renewed, bound], [root])).toMatchObject({ ok: true })
    const foreign = makeAuthority('foreign', { issuer: bound })
    expect(verify([makeClient('bound', foreign), foreign, bound], [root])).toMatchObject(
      refused('foreign'),
    )
  })

  test('that cannot be parsed cause the refusal of every certificate below the constrained CA', () => {
    for (const base of [['ip', ip(1, 2, 3)] as const, ['dns', 'a b'] as const]) {
      expect(judge([base], [])).toMatchObject(refused('can not be read'))
    }
  })

  test('cause a refusal if they would require too many comparisons of names', () => {
    const dnsNames = Array.from({ length: 250 }, (_, at) => `n${at}.good.example`)
    const excluded = Array.from({ length: 250 }, (_, at) => ['dns', `x${at}.example`] as const)
    expect(judge([], excluded, alternativeNames({ dnsNames }))).toMatchObject(refused('too many'))
  })
})
