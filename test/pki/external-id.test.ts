import { unsetExternalIdClaim } from '../../src/entities/parts/ca-external-id-claim.ts'
import { describe, expect, test } from 'vitest'

import { findExternalId, type ExternalIdRule } from '../../src/pki/external-id.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { alternativeNames, makeCertificate } from './support/fixtures.ts'

const rule: ExternalIdRule = { ...unsetExternalIdClaim, location: 'COMMON_NAME' }
const names = {
  commonNames: ['corp/ann'],
  uris: ['https://a.example/1', 'ID:ann', 'id://x/ann'],
  emails: ['ann@corp.example', 'bob@other.example'],
}
const idOf = (changes: Partial<ExternalIdRule>, from = names): string | null => {
  const found = findExternalId({ ...rule, ...changes }, from)
  return found.ok ? found.externalId : null
}

describe('an external id in a certificate', () => {
  test.each<[Partial<ExternalIdRule>, string | null]>([
    [{}, 'corp/ann'],
    [{ index: 1 }, null],
    [{ matcher: 'PREFIX', matcherCriteria: 'corp/' }, 'ann'],
    [{ matcher: 'PREFIX', matcherCriteria: 'Corp/' }, null],
    [{ matcher: 'PREFIX', matcherCriteria: 'corp/ann' }, null],
    [{ matcher: 'SUFFIX', matcherCriteria: '/ann' }, 'corp'],
    [{ matcher: 'SCHEME', matcherCriteria: 'corp' }, null],
    [{ parser: 'SPLIT', parserCriteria: '/', index: 1 }, 'ann'],
    [{ parser: 'SPLIT', parserCriteria: '/', index: 2 }, null],
    [{ parser: 'SPLIT', parserCriteria: '' }, null],
    [{ parser: 'SPLIT', parserCriteria: 'x' }, 'corp/ann'],
    [{ parser: 'SPLIT', parserCriteria: 'corp' }, null],
    [{ location: 'SAN_EMAIL' }, 'ann@corp.example'],
    [{ location: 'SAN_EMAIL', index: 1 }, 'bob@other.example'],
    [{ location: 'SAN_EMAIL', matcher: 'SUFFIX', matcherCriteria: '@other.example' }, 'bob'],
    [{ location: 'SAN_EMAIL', parser: 'SPLIT', parserCriteria: '@', index: 3 }, 'other.example'],
    [{ location: 'SAN_URI', matcher: 'SCHEME', matcherCriteria: 'id' }, 'ID:ann'],
    [{ location: 'SAN_URI', matcher: 'SCHEME', matcherCriteria: 'Id', index: 1 }, 'id://x/ann'],
    [{ location: 'SAN_URI', matcher: 'SCHEME', matcherCriteria: 'http' }, null],
    [{ location: 'SAN_URI', matcher: 'PREFIX', matcherCriteria: 'https:' }, null],
    [{ index: 1_000_000, parser: 'SPLIT', parserCriteria: '/' }, null],
  ])('by the claim rule %o is %s', (changes, expected) => {
    expect(idOf(changes)).toBe(expected)
  })

  test('is reported as missing with a reason', () => {
    const reasonOf = (changes: Partial<ExternalIdRule>): unknown =>
      findExternalId({ ...rule, ...changes }, names)
    expect(reasonOf({ matcher: 'PREFIX', matcherCriteria: 'x' })).toMatchObject({
      ok: false,
      reason: 'has no name that the claim of its CA matches',
    })
    expect(reasonOf({ index: 3 })).toMatchObject({
      ok: false,
      reason: 'has fewer than 4 ids by the claim of its CA',
    })
  })

  test('is split by a separator as String.split does', () => {
    for (const text of ['', 'a', 'aa', 'aba', 'abababa', 'xaabaabaay', 'aabaaabaab'.repeat(3)]) {
      for (const parserCriteria of ['a', 'ab', 'aba', 'aab', 'aabaa', 'baab']) {
        const parts = text.split(parserCriteria)
        parts.forEach((part, index) => {
          const found = idOf(
            { parser: 'SPLIT', parserCriteria, index },
            { ...names, commonNames: [text] },
          )
          expect(found).toBe(part === '' ? null : part)
        })
      }
    }
  })

  test('is split correctly even by an adversarial separator', () => {
    const half = 'a'.repeat(2000)
    const separator = `${half}b${half}`
    const changes: Partial<ExternalIdRule> = { parser: 'SPLIT', parserCriteria: separator }
    const commonNames = [`${half}a${separator}x${separator}`]
    expect(idOf(changes, { ...names, commonNames })).toBe(`${half}a`)
    expect(idOf({ ...changes, index: 1 }, { ...names, commonNames })).toBe('x')
    expect(
      idOf({ ...changes, index: 1 }, { ...names, commonNames: ['a'.repeat(65_536)] }),
    ).toBeNull()
  })

  test('can be taken from each common name of a certificate, in their order', () => {
    const subject = Buffer.from('301a310b300906035504030c026161310b300906035504030c026262', 'hex')
    const { certificate } = makeCertificate({
      name: subject,
      extensions: [alternativeNames({ emails: ['a@b.example'], uris: ['id:1'] })],
    })
    const parsed = parseCertificate(certificate.pem)
    expect(parsed).toMatchObject({
      commonName: null,
      commonNames: ['aa', 'bb'],
      emails: ['a@b.example'],
      uris: ['id:1'],
    })
    expect(findExternalId({ ...rule, index: 1 }, parsed)).toMatchObject({ externalId: 'bb' })
  })
})
