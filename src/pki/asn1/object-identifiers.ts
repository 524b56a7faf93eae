import type { Oid } from './der.ts'

/** @param dotted for example `2.5.29.17`. */
function oid(dotted: string): Oid {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const septets = [arc & 0x7f]
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) {
      septets.unshift((left & 0x7f) | 0x80)
    }
    return septets
  })
  return Buffer.from(bytes).toString('hex')
}

export const extensionOids = {
  subjectKeyIdentifier: oid('2.5.29.14'),
  keyUsage: oid('2.5.29.15'),
  subjectAlternativeName: oid('2.5.29.17'),
  issuerAlternativeName: oid('2.5.29.18'),
  basicConstraints: oid('2.5.29.19'),
  nameConstraints: oid('2.5.29.30'),
  certificatePolicies: oid('2.5.29.32'),
  authorityKeyIdentifier: oid('2.5.29.35'),
  extendedKeyUsage: oid('2.5.29.37'),
} as const

export const purposeOids = {
  any: oid('2.5.29.37.0'),
  serverAuth: oid('1.3.6.1.5.5.7.3.1'),
  clientAuth: oid('1.3.6.1.5.5.7.3.2'),
} as const

export const attributeOids = {
  commonName: oid('2.5.4.3'),
  emailAddress: oid('1.2.840.113549.1.9.1'),
  extensionRequest: oid('1.2.840.113549.1.9.14'),
} as const

/** Short names of name attributes (RFC 4514, section 3). */
export const attributeNames: ReadonlyMap<Oid, string> = new Map([
  [oid('2.5.4.3'), 'CN'],
  [oid('2.5.4.5'), 'SERIALNUMBER'],
  [oid('2.5.4.6'), 'C'],
  [oid('2.5.4.7'), 'L'],
  [oid('2.5.4.8'), 'ST'],
  [oid('2.5.4.9'), 'STREET'],
  [oid('2.5.4.10'), 'O'],
  [oid('2.5.4.11'), 'OU'],
  [oid('2.5.4.17'), 'POSTALCODE'],
  [oid('0.9.2342.19200300.100.1.1'), 'UID'],
  [oid('0.9.2342.19200300.100.1.25'), 'DC'],
])

export const keyOids = {
  rsa: oid('1.2.840.113549.1.1.1'),
  ec: oid('1.2.840.10045.2.1'),
  ed25519: oid('1.3.101.112'),
} as const

export const curveOids: ReadonlyMap<Oid, 'P-256' | 'P-384' | 'P-521'> = new Map([
  [oid('1.2.840.10045.3.1.7'), 'P-256'],
  [oid('1.3.132.0.34'), 'P-384'],
  [oid('1.3.132.0.35'), 'P-521'],
])

export const hashOids: ReadonlyMap<Oid, 'sha256' | 'sha384' | 'sha512'> = new Map([
  [oid('2.16.840.1.101.3.4.2.1'), 'sha256'],
  [oid('2.16.840.1.101.3.4.2.2'), 'sha384'],
  [oid('2.16.840.1.101.3.4.2.3'), 'sha512'],
])

export const signatureOids = {
  sha256WithRsa: oid('1.2.840.113549.1.1.11'),
  sha384WithRsa: oid('1.2.840.113549.1.1.12'),
  sha512WithRsa: oid('1.2.840.113549.1.1.13'),
  rsaPss: oid('1.2.840.113549.1.1.10'),
  maskGeneration1: oid('1.2.840.113549.1.1.8'),
  ecdsaWithSha256: oid('1.2.840.10045.4.3.2'),
  ecdsaWithSha384: oid('1.2.840.10045.4.3.3'),
  ecdsaWithSha512: oid('1.2.840.10045.4.3.4'),
} as const

/** Signature algorithms with a broken hash, and the common name of that hash. */
export const brokenSignatureAlgorithms: ReadonlyMap<Oid, string> = new Map([
  [oid('1.2.840.113549.1.1.2'), 'MD2'],
  [oid('1.2.840.113549.1.1.4'), 'MD5'],
  [oid('1.2.840.113549.1.1.5'), 'SHA-1'],
  [oid('1.2.840.10045.4.1'), 'SHA-1'],
  [oid('1.2.840.10040.4.3'), 'SHA-1'],
])
