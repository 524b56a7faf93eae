import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { identityFileText } from '../../src/cli/enroll/identity-file.ts'
import { IdentityCertificateFile } from '../../src/cli/tunnel/identity-certificate-file.ts'
import { readIdentityFile } from '../../src/cli/tunnel/identity-file.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  issueLeafForKey,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificateRequest } from '../../src/pki/authority/certificate-request.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { IdentityCertificateRenewer } from '../../src/tunnel/identity-certificate-renewer.ts'
import {
  type ApiLogInResult,
  type ControllerApi,
  LogInRefusedError,
} from '../../src/tunnel/controller-api.ts'
import { tunnelLimits } from '../../src/tunnel/limits.ts'
import { newCa } from '../support/authorities.ts'

// Goal: a tunnel renews the certificate of its identity before it expires, and has a valid
// certificate wherever the renewal is interrupted. Method: identity files and certificates are
// real; this file contains the controllers' rules for a pending certificate.

const DAY_MS = 24 * 60 * 60 * 1000
const START_MS = Date.UTC(2030, 0, 1)
const LIFETIME_MS = 360 * DAY_MS
const RENEWED_AT_MS = START_MS + 240 * DAY_MS

/**
 * The rules of the controllers: a renewed certificate becomes valid once the identity confirms it.
 */
class RenewingApi implements ControllerApi {
  isIssuedByNetwork = true
  /** Certificate in force, PEM. */
  current: string
  pending: string | null = null
  /** If true, the response to the next confirmation is lost after the confirmation took effect. */
  losesConfirmation = false
  readonly asked: string[] = []
  readonly #root: CertificateWithKey
  #presented: string

  constructor(root: CertificateWithKey, current: string) {
    this.#root = root
    this.current = current
    this.#presented = current
  }

  async logIn(): Promise<ApiLogInResult> {
    this.asked.push('log-in')
    if (fingerprintOf(this.#presented) !== fingerprintOf(this.current)) {
      throw new LogInRefusedError('log-in refused')
    }
    return await Promise.resolve({ token: 't', identityId: 'ann', identityName: '', lacks: null })
  }

  async get(path: string): Promise<unknown> {
    this.asked.push(path)
    const { current, isIssuedByNetwork } = this
    const password = { id: 'a0', method: 'updb' }
    const certificate = { id: 'a1', fingerprint: fingerprintOf(current), isIssuedByNetwork }
    return await Promise.resolve([password, certificate])
  }

  async post(path: string, body: object): Promise<unknown> {
    this.asked.push(path)
    const { clientCertCsr, clientCert } = body as Readonly<Record<string, string>>
    if (clientCertCsr !== undefined) {
      this.pending = await this.#issued(clientCertCsr)
      return { clientCert: this.pending }
    }
    if (clientCert !== this.pending || this.pending === null) throw new Error('it refuses it')
    this.current = this.pending
    this.pending = null
    if (!this.losesConfirmation) return {}
    this.losesConfirmation = false
    throw new Error('it closed the connection')
  }

  async logOut(): Promise<void> {
    await Promise.resolve()
  }

  follow(): void {
    throw new Error('nobody follows')
  }

  useCertificate(certificatePem: string): void {
    this.#presented = certificatePem
  }

  async #issued(requestPem: string): Promise<string> {
    const { publicKeySpki, commonName } = await parseCertificateRequest(requestPem)
    const validity = validityStartingAt(RENEWED_AT_MS, LIFETIME_MS)
    const leaf = { issuer: this.#root, commonName: String(commonName), uris: [], hosts: [] }
    return await issueLeafForKey({ ...leaf, usages: ['client'], validity }, publicKeySpki)
  }
}

const fingerprintOf = (pem: string): string => parseCertificate(pem).sha1

let folder: string
let path: string
let root: CertificateWithKey
let key: CertificateWithKey
let api: RenewingApi
let nowMs: number
let lines: string[]
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-renewal-'))
  path = join(folder, 'ann.json')
  root = await newCa('network root', START_MS)
  const validity = validityStartingAt(START_MS, LIFETIME_MS)
  const leaf = { issuer: root, commonName: 'ann', uris: [], hosts: [] }
  key = await issueLeaf({ ...leaf, usages: ['client'], validity })
  const identity = { origin: 'https://ctrl1.test:1280', ...key, caPem: root.certificatePem }
  writeFileSync(path, identityFileText(identity, [identity.origin]), { mode: 0o600 })
  api = new RenewingApi(root, key.certificatePem)
  nowMs = RENEWED_AT_MS + DAY_MS
  lines = []
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Starts the program with the identity file. */
function started(isForced = false) {
  const certificate = new IdentityCertificateFile(path, readIdentityFile(path))
  const line =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  const log = { info: line('info'), warn: line('warn'), error: line('error') }
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
  api.useCertificate(certificate.credential.certificatePem)
  return {
    certificate,
    renewal: new IdentityCertificateRenewer({ api, certificate, clock, log, isForced }),
  }
}

const fileOf = (): { readonly id: Readonly<Record<string, string>> } =>
  JSON.parse(readFileSync(path, 'utf8')) as { id: Record<string, string> }

const extend = '/current-identity/authenticators/a1/extend'
const renewals = () => api.asked.filter((asked) => asked === extend).length

describe('The certificate of a tunnel’s identity', () => {
  test('is renewed with the same key when a third of its lifetime is left, and the rest of the identity file stays unchanged', async () => {
    const { certificate, renewal } = started()
    const before = fileOf()
    await renewal.judge('ann')
    const cert = `pem:${api.current}`
    expect(fileOf()).toEqual({ ...before, id: { ...before.id, cert } })
    expect(cert).not.toBe(before.id['cert'])
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(certificate.credential).toEqual({
      certificatePem: api.current,
      privateKeyPem: key.privateKeyPem,
      caPem: root.certificatePem,
    })
    expect(lines).toEqual(['info certificate renewed {"notAfter":"2031-08-24T00:00:00Z"}'])
    expect(await renewal.logIn(), 'the new certificate logs in').toMatchObject({ token: 't' })
  })

  test('causes no request to the controller before a third of its lifetime is left', async () => {
    nowMs = RENEWED_AT_MS - DAY_MS
    const { renewal } = started()
    await renewal.judge('ann')
    expect([api.asked, lines]).toEqual([[], []])
  })

  test('is renewed once if an administrator requests it, although it is not due', async () => {
    nowMs = START_MS + DAY_MS
    const { renewal } = started(true)
    await renewal.judge('ann')
    nowMs += tunnelLimits.certificateJudgedEveryMs
    await renewal.judge('ann')
    expect(renewals()).toBe(1)
  })

  test('is written into the certificate file to which the identity file refers', async () => {
    const { id, ...others } = fileOf()
    writeFileSync(join(folder, 'ann.pem'), key.certificatePem)
    writeFileSync(path, JSON.stringify({ ...others, id: { ...id, cert: 'file://ann.pem' } }))
    await started().renewal.judge('ann')
    expect(readFileSync(join(folder, 'ann.pem'), 'utf8')).toBe(api.current)
    expect(fileOf().id).toEqual({ ...id, cert: 'file://ann.pem' })
  })
})

test.skipIf(process.geteuid?.() !== 0)(
  'An identity file that belongs to another user still belongs to this user after root has renewed the certificate in it',
  async () => {
    chownSync(path, 65_534, 65_534)
    await started().renewal.judge('ann')
    const { uid, gid } = statSync(path)
    expect([uid, gid, fileOf().id['cert']]).toEqual([65_534, 65_534, `pem:${api.current}`])
  },
)

describe('A certificate renewal that is interrupted', () => {
  test('after the confirmation continues when the program is started again', async () => {
    api.losesConfirmation = true
    await started().renewal.judge('ann')
    expect(fileOf().id['cert'], 'the program has not noticed it').toBe(`pem:${key.certificatePem}`)
    const { certificate, renewal } = started()
    expect(await renewal.logIn()).toMatchObject({ token: 't' })
    expect(certificate.credential.certificatePem).toBe(api.current)
    expect(fileOf().id['cert']).toBe(`pem:${api.current}`)
    expect(renewals()).toBe(1)
  })

  test('after the confirmation continues a minute later if the program still runs', async () => {
    api.losesConfirmation = true
    const { renewal } = started()
    await renewal.judge('ann')
    await renewal.judge('ann')
    expect(lines).toEqual([
      'warn certificate not renewed; trying again each minute {"reason":"it closed the connection","notAfter":"2030-12-27T00:00:00Z"}',
    ])
    nowMs += tunnelLimits.renewedAgainMs
    await renewal.judge('ann')
    expect([renewals(), fileOf().id['cert']]).toEqual([1, `pem:${api.current}`])
  })

  test('before the confirmation starts again from the beginning, and the earlier certificate stays valid', async () => {
    const { certificate } = started()
    certificate.store(await pendingOf(certificate))
    const { renewal } = started()
    expect(await renewal.logIn()).toMatchObject({ token: 't' })
    await renewal.judge('ann')
    expect([renewals(), fileOf().id['cert']]).toEqual([2, `pem:${api.current}`])
  })

  test('because the file cannot be written is not confirmed', async () => {
    const { renewal } = started()
    rmSync(path)
    await renewal.judge('ann')
    expect(api.current).toBe(key.certificatePem)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('certificate not renewed; trying again each minute')
  })
})

test('A certificate that another CA issued is not renewed, and the log contains who must renew it', async () => {
  api.isIssuedByNetwork = false
  const { renewal } = started()
  for (let minute = 0; minute < 3; minute += 1) {
    await renewal.judge('ann')
    nowMs += tunnelLimits.renewedAgainMs
  }
  expect(lines).toEqual([
    'warn certificate not renewed; trying again each minute {"reason":"the network did not issue it, so its own authority must renew it","notAfter":"2030-12-27T00:00:00Z"}',
  ])
  expect(renewals()).toBe(0)
})

test('A refused log-in is not repeated if there is no renewed certificate', async () => {
  api.current = root.certificatePem
  await expect(started().renewal.logIn()).rejects.toThrow('log-in refused')
  expect(api.asked).toEqual(['log-in'])
})

test('A renewed certificate is not stored if it does not belong to the private key of the identity', async () => {
  const { certificate } = started()
  expect(() => certificate.store(root.certificatePem)).toThrow(
    'the private key does not belong to the certificate',
  )
  expect(fileOf().id['cert']).toBe(`pem:${key.certificatePem}`)
})

/** A renewed certificate that the controllers have issued and the identity has not confirmed. */
async function pendingOf(certificate: IdentityCertificateFile): Promise<string> {
  await api.post(extend, { clientCertCsr: await certificate.request('ann') })
  return api.pending ?? ''
}
