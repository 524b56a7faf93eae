import { generateKeyPairSync } from 'node:crypto'

import { importKeyPair } from './certificate-request.ts'
import type { RouterKeyAlgorithm } from './router-key-algorithms.ts'
import type { JsonGeneralNames, JsonName } from './x509.ts'

/** Generates a router's key in unencrypted PKCS #8; write it only to files of mode 0600. */
export function generateRouterKeyPem(algorithm: RouterKeyAlgorithm): string {
  const [kind = '', size = ''] = algorithm.split(':')
  const { privateKey } =
    kind === 'EC'
      ? generateKeyPairSync('ec', { namedCurve: size })
      : generateKeyPairSync('rsa', { modulusLength: Number(size) })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

interface RouterSubject {
  readonly commonName: string
  readonly country: string | null
  readonly province: string | null
  readonly locality: string | null
  readonly organization: string | null
  readonly organizationalUnit: string | null
}

interface RequestedNames {
  readonly dns: readonly string[]
  readonly ip: readonly string[]
  readonly uri: readonly string[]
  readonly email: readonly string[]
}

/** Creates a PKCS #10 request (RFC 2986) in PEM with the requested names. */
export async function createRouterRequest(options: {
  readonly privateKeyPem: string
  readonly subject: RouterSubject
  readonly names: RequestedNames
}): Promise<string> {
  const { Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } =
    await import('./x509.ts')
  const keys = importKeyPair(options.privateKeyPem)
  const names = generalNames(options.names)
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: subjectName(options.subject),
    keys,
    signingAlgorithm: keys.algorithm,
    extensions: names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)],
  })
  return `${request.toString('pem').trim()}\n`
}

function subjectName(subject: RouterSubject): JsonName {
  const fields = {
    C: subject.country,
    ST: subject.province,
    L: subject.locality,
    O: subject.organization,
    OU: subject.organizationalUnit,
    CN: subject.commonName,
  }
  return Object.entries(fields).flatMap(([name, text]) =>
    text === null ? [] : [{ [name]: [text] }],
  )
}

function generalNames({ dns, ip, uri, email }: RequestedNames): JsonGeneralNames {
  return [
    ...dns.map((value) => ({ type: 'dns' as const, value })),
    ...ip.map((value) => ({ type: 'ip' as const, value })),
    ...uri.map((value) => ({ type: 'url' as const, value })),
    ...email.map((value) => ({ type: 'email' as const, value })),
  ]
}
