import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { alarmTable } from '../../src/cluster/alarm-table.ts'
import { CertificateRenewer } from '../../src/cluster/secrets/certificate-renewer.ts'
import type { MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
  issueControllerCertificateForKey,
  issueLeafForKey,
  renewIssuingAuthority,
  type ValidityPeriod,
} from '../../src/pki/authority/authority.ts'
import {
  checkCertificateChain,
  checkKeyMatches,
  parseCertificates,
} from '../../src/pki/certificate.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const start = Date.UTC(2030, 0, 1)
const at = (days: number): number => start + days * DAY_MS
const days = (from: number, to: number): ValidityPeriod => ({
  notBeforeMs: at(from),
  notAfterMs: at(to),
})

let folder = ''
let paths: { cert: string; key: string; ca: string }
let root: CertificateWithKey
let issuing: CertificateWithKey
let leaf: CertificateWithKey
/** Issuing authority that the renewer has; null: none. */
let known: CertificateWithKey | null
let nowMs = 0
let monotonicMs = 0
let taken: MeshIdentity[] = []
let alarms: string[] = []
let errors: string[] = []
let warnings: string[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-renewer-'))
  paths = {
    cert: join(folder, 'cert.pem'),
    key: join(folder, 'controller.key'),
    ca: join(folder, 'ca.pem'),
  }
  root = await createRootAuthority({ commonName: 'root', validity: days(0, 3650) })
  issuing = await createIssuingAuthority({ commonName: 'issuing', root, validity: days(0, 1825) })
  leaf = await leafBy(issuing, days(0, 300))
  known = issuing
  nowMs = at(1)
  monotonicMs = 0
  taken = []
  alarms = []
  errors = []
  warnings = []
  layOut(leaf)
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function leafBy(
  issuer: CertificateWithKey,
  validity: ValidityPeriod,
  id = 'ctrl1',
): Promise<CertificateWithKey> {
  return issueControllerCertificate({
    issuer,
    trustDomain: 'test.example',
    id,
    hosts: ['localhost'],
    validity,
  })
}

function layOut({ certificatePem, privateKeyPem }: CertificateWithKey): void {
  writeFileSync(paths.cert, certificatePem)
  writeSecretFile(paths.key, privateKeyPem)
  writeFileSync(paths.ca, root.certificatePem)
}

function renewerOf(hosts: readonly string[] = ['localhost']): CertificateRenewer {
  return new CertificateRenewer({
    selfId: 'ctrl1',
    trustDomain: 'test.example',
    paths,
    hosts,
    identity: { ...leaf, caPem: root.certificatePem },
    issuing: () => known,
    onRenewed: (identity) => taken.push(identity),
    alarms: {
      raise: (code, facts) => alarms.push(`${code} ${alarmTable[code].text(facts as never)}`),
      clear: (code) => alarms.push(`clear ${code}`),
    },
    clock: { nowMs: () => nowMs, monotonicMs: () => monotonicMs },
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: (fields, message) => warnings.push(`${message} ${JSON.stringify(fields)}`),
      error: (_fields, message) => errors.push(message),
    },
  })
}

const chainOnDisk = (): ReturnType<typeof parseCertificates> =>
  parseCertificates(readFileSync(paths.cert, 'utf8'))

/** Runs two checks: changed files are used only after they have stayed unchanged for one check. */
async function lookTwice(renewer: CertificateRenewer): Promise<void> {
  await renewer.look()
  await renewer.look()
}

describe('A certificate issued by the cluster’s CA', () => {
  test('is renewed with the same key when a third of its lifetime is left, and not before', async () => {
    const renewer = renewerOf()
    nowMs = at(200) - 1
    await renewer.look()
    expect(taken).toEqual([])
    nowMs = at(200)
    await renewer.look()
    const [next, ...above] = chainOnDisk()
    expect(taken).toEqual([
      {
        certificatePem: readFileSync(paths.cert, 'utf8'),
        privateKeyPem: leaf.privateKeyPem,
        caPem: root.certificatePem,
      },
    ])
    checkKeyMatches(next, leaf.privateKeyPem)
    checkCertificateChain([next, ...above], parseCertificates(root.certificatePem), nowMs)
    expect(next.notAfterMs).toBe(at(565))
    expect(next.uris).toEqual(['spiffe://test.example/controller/ctrl1'])
    expect(statSync(paths.cert).mode & 0o777).toBe(0o644)
    expect(readdirSync(folder).sort()).toEqual(['ca.pem', 'cert.pem', 'controller.key'])
    await lookTwice(renewer)
    expect(taken).toHaveLength(1)
  })

  test('is not renewed when it is due if an operator has replaced its file: the operator’s certificate is used and not overwritten', async () => {
    const renewer = renewerOf()
    await renewer.look()
    nowMs = at(200)
    const other = await createIssuingAuthority({
      commonName: 'other',
      root,
      validity: days(0, 999),
    })
    const theirs = await issueControllerCertificateForKey({
      issuer: other,
      trustDomain: 'test.example',
      id: 'ctrl1',
      hosts: ['localhost'],
      publicKeySpki: Uint8Array.from(
        parseCertificates(leaf.certificatePem)[0].native.publicKey.export({
          type: 'spki',
          format: 'der',
        }),
      ),
      validity: days(0, 900),
    })
    writeFileSync(paths.cert, theirs)
    await lookTwice(renewer)
    expect(readFileSync(paths.cert, 'utf8')).toBe(theirs)
    expect(taken.map(({ certificatePem }) => certificatePem)).toEqual([theirs])
  })

  test('is renewed immediately, and only once, if it lacks configured hosts', async () => {
    const renewer = renewerOf(['localhost', '192.0.2.7', 'ctrl1.example'])
    await renewer.look()
    const [next] = chainOnDisk()
    expect([next.dnsNames, next.ipAddresses]).toEqual([
      ['localhost', 'ctrl1.example'],
      ['192.0.2.7'],
    ])
    await lookTwice(renewer)
    expect(taken).toHaveLength(1)
  })

  test('is renewed immediately when the configuration adds a host', async () => {
    const renewer = renewerOf()
    await renewer.requireHosts(['localhost', 'api.example'])
    expect(chainOnDisk()[0].dnsNames).toEqual(['localhost', 'api.example'])
    await renewer.requireHosts(['localhost', 'api.example'])
    expect(taken).toHaveLength(1)
    expect(warnings).toEqual([])
  })

  test('is renewed by the cluster’s next CA as soon as the controller knows this CA', async () => {
    const renewer = renewerOf()
    await renewer.look()
    const next = await renewIssuingAuthority({
      root,
      presentPem: issuing.certificatePem,
      publicKeySpki: null,
      validity: days(0, 2000),
    })
    known = { certificatePem: next.certificatePem, privateKeyPem: next.privateKeyPem ?? '' }
    await renewer.look()
    expect(chainOnDisk()[1]?.sha256).toBe(parseCertificates(next.certificatePem)[0].sha256)
    expect(taken).toHaveLength(1)
  })

  test('is not renewed by a CA that peers do not trust, and the renewal is retried a minute later', async () => {
    const renewer = renewerOf()
    const foreign = await createRootAuthority({ commonName: 'root', validity: days(0, 3650) })
    known = await createIssuingAuthority({
      commonName: 'issuing',
      root: foreign,
      validity: days(0, 2000),
    })
    await lookTwice(renewer)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain('renewal failed (new-authority): its chain does not lead to')
    expect(readFileSync(paths.cert, 'utf8')).toBe(leaf.certificatePem)
    monotonicMs = 60_000
    await renewer.look()
    expect(errors).toHaveLength(2)
    expect(taken).toEqual([])
  })

  test('can be renewed on request, unless the CA has expired or is unknown', async () => {
    const renewer = renewerOf()
    await renewer.renew()
    expect(taken).toHaveLength(1)
    nowMs = at(1826)
    await expect(renewer.renew()).rejects.toThrow(
      "expired at 2034-12-31T00:00:00Z; run 'flotilla pki renew-issuing'",
    )
    known = null
    await expect(renewer.renew()).rejects.toThrow('is not known here yet')
    expect(taken).toHaveLength(1)
  })

  test('stays in use if the renewed certificate cannot be written, and the log contains the reason', async () => {
    const renewer = renewerOf()
    nowMs = at(200)
    // A folder at the path of the file makes the write fail for root as well.
    mkdirSync(`${paths.cert}.${process.pid}.partial`)
    await renewer.look()
    expect(taken).toEqual([])
    expect(errors[0]).toContain('renewal failed (due): ')
  })
})

describe('A certificate issued by another CA', () => {
  let foreignIssuing: CertificateWithKey

  beforeEach(async () => {
    foreignIssuing = await createIssuingAuthority({
      commonName: 'company issuing',
      root,
      validity: days(0, 1825),
    })
    leaf = await leafBy(foreignIssuing, days(0, 300))
    layOut(leaf)
  })

  test('is never renewed by the cluster, even on request', async () => {
    const renewer = renewerOf(['localhost', 'missing.example'])
    nowMs = at(299)
    await lookTwice(renewer)
    await expect(renewer.renew()).rejects.toThrow('have its issuer renew it')
    expect(taken).toEqual([])
    expect(renewer.view()).toMatchObject({ isRenewedHere: false, renewAtMs: null })
    expect(alarms.at(-1)).toContain('have its issuer renew it for the same key')
  })

  test('is not renewed when the configuration adds a host; a warning lists the missing hosts', async () => {
    const renewer = renewerOf()
    await renewer.requireHosts(['localhost', 'api.example'])
    expect(taken).toEqual([])
    expect(warnings).toEqual([
      'the certificate lacks hosts of the configuration, and clients would reject it there; have its issuer renew it for the same key, with these hosts {"hosts":["api.example"]}',
    ])
  })

  test('is replaced by another certificate in the same files once these files have stopped changing', async () => {
    const renewer = renewerOf()
    await renewer.look()
    const next = await sameKey(days(0, 600))
    writeFileSync(paths.cert, next)
    await renewer.look()
    expect(taken).toEqual([])
    await renewer.look()
    expect(taken.map(({ certificatePem }) => certificatePem)).toEqual([next])
    await lookTwice(renewer)
    expect(taken).toHaveLength(1)
  })

  test('is replaced if its files changed while the controller started', async () => {
    const next = await sameKey(days(0, 600))
    writeFileSync(paths.cert, next)
    const renewer = renewerOf()
    await renewer.look()
    expect(taken.map(({ certificatePem }) => certificatePem)).toEqual([next])
  })

  test('stays in use while the files on disk are unusable, with one log line and an alarm for each reason', async () => {
    const renewer = renewerOf()
    await renewer.look()
    const other = await leafBy(foreignIssuing, days(0, 600))
    const next = await sameKey(days(0, 600))
    const broken: [string, () => void][] = [
      ['another key than the one in the member record', () => layOut(other)],
      ['no PEM certificate found', () => writeFileSync(paths.cert, 'half a fil')],
      ['file not found', () => rmSync(paths.cert)],
      ['it expired at', () => writeFileSync(paths.cert, pemBefore)],
      ['it belongs to controller ctrl2', () => writeFileSync(paths.cert, pemOfOther)],
      ['does not lead to any', () => writeFileSync(paths.ca, foreignRoot)],
      ['chmod 600', () => chmodSync(paths.key, 0o644)],
      ['does not belong to the certificate', () => writeSecretFile(paths.key, other.privateKeyPem)],
    ]
    const pemBefore = await sameKey(days(-2, 0.5))
    const pemOfOther = (await leafBy(foreignIssuing, days(0, 600), 'ctrl2')).certificatePem
    const foreignRoot = (
      await createRootAuthority({ commonName: 'other root', validity: days(0, 3650) })
    ).certificatePem
    for (const [sentence, spoil] of broken) {
      errors = []
      layOut({ certificatePem: next, privateKeyPem: leaf.privateKeyPem })
      spoil()
      await lookTwice(renewer)
      expect(errors.join()).toContain(sentence)
      expect(renewer.view().refused).toContain(sentence)
      // Logged only once, not at each check.
      await lookTwice(renewer)
      expect(errors).toHaveLength(1)
      await expect(renewer.reload()).rejects.toThrow(sentence)
      expect(taken).toEqual([])
      expect(alarms.at(-1)).toMatch(/^CERTIFICATE_REFUSED certificate files rejected: /)
      expect(alarms.at(-1)).toContain(sentence)
    }
    layOut({ certificatePem: next, privateKeyPem: leaf.privateKeyPem })
    await lookTwice(renewer)
    expect(taken.map(({ certificatePem }) => certificatePem)).toEqual([next])
    expect(renewer.view().refused).toBeNull()
    expect(alarms.at(-1)).toBe('clear CERTIFICATE_REFUSED')
  })

  test('is rejected if it does not allow use as both server and client', async () => {
    const renewer = renewerOf()
    const [own] = parseCertificates(leaf.certificatePem)
    const spki = Uint8Array.from(own.native.publicKey.export({ type: 'spki', format: 'der' }))
    const content = { issuer: foreignIssuing, commonName: 'ctrl1', hosts: ['localhost'] }
    const uris = ['spiffe://test.example/controller/ctrl1']
    for (const [usage, missing] of [
      ['server', 'clientAuth'],
      ['client', 'serverAuth'],
    ] as const) {
      const leafOf = { ...content, uris, usages: [usage], validity: days(0, 600) } as const
      writeFileSync(paths.cert, await issueLeafForKey(leafOf, spki))
      await expect(renewer.reload()).rejects.toThrow(`extended key usage lacks ${missing}`)
    }
    expect(taken).toEqual([])
  })

  test('can be replaced in its files by a certificate of the cluster’s CA, which the cluster then renews', async () => {
    const renewer = renewerOf()
    const next = await issuedFor(issuing, days(0, 30))
    writeFileSync(paths.cert, next)
    await renewer.reload()
    expect(renewer.view().isRenewedHere).toBe(true)
    nowMs = at(25)
    await renewer.look()
    expect(chainOnDisk()[0].notAfterMs).toBe(at(25 + 365))
  })

  const sameKey = (validity: ValidityPeriod): Promise<string> => issuedFor(foreignIssuing, validity)

  async function issuedFor(issuer: CertificateWithKey, validity: ValidityPeriod): Promise<string> {
    const { issueControllerCertificateForKey } =
      await import('../../src/pki/authority/authority.ts')
    const [own] = parseCertificates(leaf.certificatePem)
    return await issueControllerCertificateForKey({
      issuer,
      trustDomain: 'test.example',
      id: 'ctrl1',
      hosts: ['localhost'],
      publicKeySpki: Uint8Array.from(own.native.publicKey.export({ type: 'spki', format: 'der' })),
      validity,
    })
  }
})

describe('The alarm about the expiry of a certificate', () => {
  test('is raised four times (30 days, 7 days and one day before the expiry, and after the expiry), and clears when the certificate is renewed', async () => {
    known = null
    const renewer = renewerOf()
    for (const left of [31, 30, 20, 7, 5, 1, 0.5, -1]) {
      nowMs = at(300 - left)
      await renewer.look()
    }
    const raised = alarms.map((text) => /ctrl1 (.*) at 2030-10-28T00:00:00Z/.exec(text)?.[1])
    expect(raised).toEqual([
      'expires within 30 days,',
      'expires within 7 days,',
      'expires within a day,',
      'expired',
    ])
    expect(renewer.health().level).toBe('expired')
    known = issuing
    await renewer.look()
    expect(alarms.at(-1)).toBe('clear CERTIFICATE_EXPIRES')
    expect(renewer.health().level).toBe('none')
    expect(renewer.view().alarm).toBeNull()
  })

  test('also covers the issuing CA, and contains the command that renews it', async () => {
    leaf = await leafBy(issuing, days(1700, 1825))
    layOut(leaf)
    const renewer = renewerOf()
    nowMs = at(1795)
    await renewer.look()
    expect(alarms).toHaveLength(1)
    expect(alarms[0]).toContain(
      'the issuing authority "issuing" expires within 30 days, at 2034-12-31',
    )
    expect(alarms[0]).toContain("'flotilla pki renew-issuing'")
  })
})

test('The certificate renewer checks the certificates at its start, and waits for a renewal in progress when it stops', async () => {
  const renewer = renewerOf(['localhost', 'new.example'])
  renewer.start()
  await renewer.stop()
  expect(taken).toHaveLength(1)
  expect(chainOnDisk()[0].dnsNames).toEqual(['localhost', 'new.example'])
})
