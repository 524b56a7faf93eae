import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { createPkiControl } from '../../src/controller/admin/pki-control.ts'
import type { ControllerPlan } from '../../src/cli/quickstart/plan.ts'
import { CertificateRenewer } from '../../src/cluster/secrets/certificate-renewer.ts'
import type { MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import { loadControllerConfig } from '../../src/config/controller/load.ts'
import { assert, requirePresent } from '../../src/lib/assert.ts'
import { systemClock } from '../../src/lib/clock.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
  issueLeaf,
  type ValidityPeriod,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import {
  checkCertificateChain,
  checkKeyMatches,
  parseCertificates,
} from '../../src/pki/certificate.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import { RecordedActions } from '../support/recorded-actions.ts'
import { runHere as run } from './run-here.ts'
import { type ServedSocket, serveSocket } from './served-socket.ts'
import { layOut, run as runProcess } from './support.ts'
import { eventually } from '../support/eventually.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const now = Date.now()
const validity = validityStartingAt(now, 30 * DAY_MS)

let folder = ''
let controller: ControllerPlan
let configPath = ''
let trustDomain = ''
let root: CertificateWithKey
let issuing: CertificateWithKey
let leaf: CertificateWithKey
let server: ServedSocket | null = null
const actions = new RecordedActions()
let taken: MeshIdentity[] = []
let mistakes: unknown[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-pki-'))
  controller = requirePresent((await layOut(folder, 1)).controllers[0], 'ctrl1')
  configPath = controller.configPath
  const loaded = loadControllerConfig(configPath, {})
  assert(loaded.ok, 'the configuration is good')
  trustDomain = loaded.config.trustDomain
  root = await createRootAuthority({
    commonName: 'root',
    validity: validityStartingAt(now, 900 * DAY_MS),
  })
  issuing = await createIssuingAuthority({
    commonName: 'issuing',
    root,
    validity: validityStartingAt(now, 500 * DAY_MS),
  })
  leaf = await leafOf('ctrl1', validity)
  writeFileSync(own('cert.pem'), leaf.certificatePem)
  writeSecretFile(own('controller.key'), leaf.privateKeyPem)
  writeFileSync(own('ca.pem'), root.certificatePem)
  writeSecretFile(join(folder, 'root.key'), root.privateKeyPem)
  taken = []
  mistakes = []
})
afterEach(async () => {
  await server?.close()
  server = null
  rmSync(folder, { recursive: true, force: true })
})

/** Path of a file in ctrl1's folder. */
const own = (name: string): string => join(dirname(configPath), name)
const leafOf = (id: string, of: ValidityPeriod): Promise<CertificateWithKey> =>
  issueControllerCertificate({
    issuer: issuing,
    trustDomain,
    id,
    hosts: ['localhost'],
    validity: of,
  })

/** Starts a simulated controller at the admin socket where the program expects it. */
async function serve(
  members: readonly { id: string; leaf: CertificateWithKey }[] = [],
): Promise<void> {
  const renewer = new CertificateRenewer({
    selfId: 'ctrl1',
    trustDomain,
    paths: { cert: own('cert.pem'), key: own('controller.key'), ca: own('ca.pem') },
    hosts: ['localhost'],
    identity: { ...leaf, caPem: root.certificatePem },
    issuing: () => issuing,
    onRenewed: (identity) => taken.push(identity),
    alarms: { raise: () => undefined, clear: () => undefined },
    clock: systemClock,
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (_fields, message) => mistakes.push(message),
    },
  })
  const pki = createPkiControl({
    renewer,
    serverCertificates: () => [],
    reload: () => renewer.reload(),
    trustDomain,
    clock: systemClock,
    issuing: () => issuing,
    installIssuing: (next) => {
      issuing = next
      return Promise.resolve()
    },
    actions,
    memberKeySha256: (id) => {
      const member = members.find((one) => one.id === id)
      return member === undefined
        ? null
        : parseCertificates(member.leaf.certificatePem)[0].publicKeySha256
    },
  })
  const logger = {
    warn: () => undefined,
    error: (fields: Readonly<Record<string, unknown>>) => mistakes.push(fields['err']),
  }
  server = await serveSocket(controller.dataFolder, { pki, logger })
}

const read = (path: string): ReturnType<typeof parseCertificates> =>
  parseCertificates(readFileSync(path, 'utf8'))
const anchors = (): ReturnType<typeof parseCertificates> => parseCertificates(root.certificatePem)

describe('pki inspect', () => {
  test('lists the leaf and its issuers, whether the controller is running or stopped', async () => {
    const stopped = await runProcess(['pki', 'inspect', '--config', configPath])
    expect([stopped.code, stopped.stderr]).toEqual([0, ''])
    expect(stopped.stdout).toMatch(/leaf +CN=ctrl1 +spiffe:\/\/\S+\/controller\/ctrl1, localhost/)
    expect(stopped.stdout).toMatch(/issuing +CN=issuing +- +\S+Z +499 +CN=root +yes/)
    expect(stopped.stdout).toMatch(/root +CN=root +- +\S+Z +899 +itself +yes +\S+ca\.pem$/m)
    expect(stopped.stdout).not.toContain('the controller renews')
    await serve()
    const running = await run(['pki', 'inspect', '--config', configPath])
    expect(running.code).toBe(0)
    expect(running.stdout).toContain('the controller renews its certificate from ')
    expect(running.stdout).not.toMatch(/ cluster$/m)
    expect(running.stdout).not.toContain('PRIVATE')
  })

  test('shows the current issuing CA together with the earlier one that issued the leaf', async () => {
    await serve()
    const { certificatePem, privateKeyPem } = await createIssuingAuthority({
      commonName: 'issuing',
      root,
      validity: validityStartingAt(now, 600 * DAY_MS),
    })
    issuing = { certificatePem, privateKeyPem }
    const shown = await run(['pki', 'inspect', '--config', configPath])
    expect(shown.stdout).toMatch(/issuing .* 499 .*cert\.pem$/m)
    expect(shown.stdout).toMatch(/issuing .* 599 .* cluster$/m)
  })

  test('exits with 1 for an expired certificate, and for a certificate that no given CA has issued', async () => {
    const expired = await leafOf('ctrl2', {
      notBeforeMs: now - 9 * DAY_MS,
      notAfterMs: now - DAY_MS,
    })
    const path = join(folder, 'expired.pem')
    writeFileSync(path, expired.certificatePem)
    const first = await run(['pki', 'inspect', '--ca', own('ca.pem'), path])
    expect([first.code, first.stderr]).toEqual([1, expect.stringContaining('expired at ')])
    const foreign = await createRootAuthority({ commonName: 'root', validity })
    const ca = join(folder, 'foreign.pem')
    writeFileSync(ca, foreign.certificatePem)
    const second = await run(['pki', 'inspect', '--json', '--ca', ca, own('cert.pem')])
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('chains to none')])
    expect(JSON.parse(second.stdout)).toMatchObject({
      ok: false,
      certificates: [
        { what: 'leaf', isTrusted: false },
        { what: 'issuing', isTrusted: false },
      ],
    })
  })

  test('does not check trust if no CA is given, and reports a missing file', async () => {
    const alone = await run(['pki', 'inspect', own('cert.pem')])
    expect([alone.code, alone.stdout]).toEqual([
      0,
      expect.stringMatching(/leaf .* - +\S+cert\.pem$/m),
    ])
    const none = await run(['pki', 'inspect', join(folder, 'none.pem')])
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('file not found')])
    expect((await run(['pki', 'inspect'])).code).toBe(2)
  })

  test('reports the fault of a CA that the operator configured', async () => {
    const environment = {
      FLOTILLA_IDENTITY_SIGNER_CERT: own('cert.pem'),
      FLOTILLA_IDENTITY_SIGNER_KEY: own('controller.key'),
    }
    const refused = await run(['pki', 'inspect', '--config', configPath], environment)
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('not a CA certificate'),
    ])
    writeFileSync(join(folder, 'issuing.pem'), issuing.certificatePem)
    writeSecretFile(join(folder, 'issuing.key'), issuing.privateKeyPem)
    const taken = await run(['pki', 'inspect', '--config', configPath], {
      FLOTILLA_IDENTITY_SIGNER_CERT: join(folder, 'issuing.pem'),
      FLOTILLA_IDENTITY_SIGNER_KEY: join(folder, 'issuing.key'),
    })
    expect([taken.code, taken.stderr]).toEqual([0, ''])
  })
})

describe('pki renew and reload', () => {
  test('immediately activate a new certificate that has the same key', async () => {
    await serve()
    const renewed = await run(['pki', 'renew', '--config', configPath])
    expect([renewed.code, renewed.stdout]).toEqual([0, expect.stringContaining('in use: CN=ctrl1')])
    checkKeyMatches(read(own('cert.pem'))[0], leaf.privateKeyPem)
    expect(taken).toHaveLength(1)
    writeFileSync(own('cert.pem'), leaf.certificatePem)
    expect((await run(['pki', 'reload', '--config', configPath])).code).toBe(0)
    expect(taken).toHaveLength(2)
    writeFileSync(own('cert.pem'), 'spoilt')
    const refused = await run(['pki', 'reload', '--config', configPath])
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('no PEM certificate'),
    ])
    expect([taken.length, mistakes]).toEqual([2, []])
  })
})

describe('pki renew with the certificate of another member', () => {
  test('obtains a new certificate for a member whose certificate has expired, but not for an unknown member, and not if the key or the issuer is another one', async () => {
    const expired = { notBeforeMs: now - 9 * DAY_MS, notAfterMs: now - DAY_MS }
    const away = await leafOf('ctrl3', expired)
    await serve([{ id: 'ctrl3', leaf: away }])
    const renewOf = async (certificatePem: string): ReturnType<typeof run> => {
      const path = join(folder, 'member.pem')
      writeFileSync(path, certificatePem)
      const out = join(folder, 'new.pem')
      return await run([
        'pki',
        'renew',
        '--config',
        configPath,
        '--member-cert',
        path,
        '--out',
        out,
      ])
    }
    const done = await renewOf(away.certificatePem)
    expect([done.code, done.stderr]).toEqual([0, ''])
    const next = read(join(folder, 'new.pem'))
    checkCertificateChain(next, anchors(), Date.now())
    checkKeyMatches(next[0], away.privateKeyPem)
    expect(next[0].uris).toEqual([`spiffe://${trustDomain}/controller/ctrl3`])
    rmSync(join(folder, 'new.pem'))

    const stranger = await renewOf((await leafOf('ctrl4', expired)).certificatePem)
    expect(stranger.stderr).toContain('no member ctrl4 with this key')
    const otherKey = await renewOf((await leafOf('ctrl3', expired)).certificatePem)
    expect(otherKey.stderr).toContain('no member ctrl3 with this key')
    // A certificate with the correct key and name, but with other hosts and a foreign signature.
    const foreign = await createRootAuthority({ commonName: 'issuing', validity })
    const forged = await forgedFor(away, foreign)
    expect((await renewOf(forged)).stderr).toContain('not issued by the authority of this cluster')
    expect(existsSync(join(folder, 'new.pem'))).toBe(false)
  })

  async function forgedFor(
    member: CertificateWithKey,
    issuer: CertificateWithKey,
  ): Promise<string> {
    const { issueControllerCertificateForKey } =
      await import('../../src/pki/authority/authority.ts')
    const [certificate] = parseCertificates(member.certificatePem)
    return await issueControllerCertificateForKey({
      issuer,
      trustDomain,
      id: 'ctrl3',
      hosts: ['bank.example'],
      publicKeySpki: Uint8Array.from(
        certificate.native.publicKey.export({ type: 'spki', format: 'der' }),
      ),
      validity,
    })
  }
})

describe('pki renew-issuing', () => {
  const renewIssuing = (...words: string[]): ReturnType<typeof run> => {
    const key = join(folder, 'root.key')
    return run(['pki', 'renew-issuing', '--config', configPath, '--root-key', key, ...words])
  }

  test('creates an issuing CA with a new key and the same name, which issues a new certificate to the controller', async () => {
    await serve()
    const before = issuing
    const done = await renewIssuing('--days', '600')
    expect([done.code, done.stderr]).toEqual([0, ''])
    const former = new Date(parseCertificates(before.certificatePem)[0].notAfterMs)
    expect(done.stdout).toContain(`${former.toISOString().replace('.000Z', 'Z')} at the latest`)
    const [next] = parseCertificates(issuing.certificatePem)
    checkKeyMatches(next, issuing.privateKeyPem)
    expect(issuing.privateKeyPem).not.toBe(before.privateKeyPem)
    expect(next.commonName).toBe('issuing')
    expect((await run(['pki', 'inspect', '--config', configPath])).code).toBe(0)
    await eventually(() => expect(read(own('cert.pem'))[1]?.sha256).toBe(next.sha256))
    checkCertificateChain(read(own('cert.pem')), anchors(), Date.now())
    expect(() =>
      checkCertificateChain(parseCertificates(leaf.certificatePem), anchors(), now),
    ).not.toThrow()
  })

  test('keeps the key with --keep-key, and limits the validity to that of the root', async () => {
    await serve()
    const before = issuing
    expect((await renewIssuing('--keep-key')).code).toBe(0)
    expect(issuing.privateKeyPem).toBe(before.privateKeyPem)
    expect(issuing.certificatePem).not.toBe(before.certificatePem)
    // The requested validity was five years; an authority must not outlive its root.
    expect(parseCertificates(issuing.certificatePem)[0].notAfterMs).toBe(anchors()[0].notAfterMs)
  })

  test('accepts an issuing CA that the operator signed elsewhere together with its key file, and without this file only if the current key belongs to the CA', async () => {
    await serve()
    const theirs = await createIssuingAuthority({ commonName: 'issuing', root, validity })
    writeFileSync(join(folder, 'next.pem'), theirs.certificatePem)
    writeSecretFile(join(folder, 'next.key'), theirs.privateKeyPem)
    const cert = ['--cert', join(folder, 'next.pem')]
    const give = (...words: string[]): ReturnType<typeof run> =>
      run(['pki', 'renew-issuing', '--config', configPath, ...words])
    // Without a key file, the certificate must belong to the current key, and this one does not.
    expect((await give(...cert)).stderr).toContain('does not belong to the certificate')
    const done = await give(...cert, '--key', join(folder, 'next.key'))
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain(`remove ${join(folder, 'next.key')} from this host again`)
    expect(issuing.privateKeyPem).toBe(theirs.privateKeyPem)
    expect((await give()).code).toBe(2)
    expect((await give('--key', join(folder, 'next.key'))).code).toBe(2)
    expect((await renewIssuing(...cert)).code).toBe(2)
  })

  test('refuses a key that is not the root key, and a key that other users can read', async () => {
    await serve()
    const before = issuing
    writeSecretFile(join(folder, 'root.key'), issuing.privateKeyPem)
    expect((await renewIssuing()).stderr).toContain('is not the key of any CA certificate')
    rmSync(join(folder, 'root.key'))
    writeFileSync(join(folder, 'root.key'), root.privateKeyPem, { mode: 0o644 })
    expect((await renewIssuing()).stderr).toContain('chmod 600')
    expect(issuing).toBe(before)
  })

  test('installs no issuing CA that the cluster does not trust, and none with another name', async () => {
    await serve()
    const { sendToAdminSocket } = await import('../../src/cli/client/admin-socket.ts')
    const install = async ({
      certificatePem,
      privateKeyPem,
    }: CertificateWithKey): Promise<string> => {
      const path = '/fabric/v1/pki/issuing-authority'
      const body = { certificatePem, privateKeyPem }
      const asked = sendToAdminSocket(controller.dataFolder, { method: 'POST', path, body })
      return await asked.then(
        () => 'taken',
        (error: unknown) => String(error),
      )
    }
    const before = issuing
    const foreign = await createRootAuthority({ commonName: 'root', validity })
    const untrusted = await createIssuingAuthority({
      commonName: 'issuing',
      root: foreign,
      validity,
    })
    expect(await install(untrusted)).toContain('does not lead to any')
    const renamed = await createIssuingAuthority({ commonName: 'other', root, validity })
    expect(await install(renamed)).toContain('the name must equal')
    const below = await createIssuingAuthority({ commonName: 'issuing', root: issuing, validity })
    const chained = { ...below, certificatePem: below.certificatePem + issuing.certificatePem }
    expect(await install(chained)).toContain('allows fewer authorities below itself')
    expect(await install(leaf)).toContain('not a CA certificate')
    expect(await install({ ...issuing, privateKeyPem: leaf.privateKeyPem })).toContain('key')
    expect(issuing).toBe(before)
  })
})

describe('pki issue', () => {
  test('issues a client certificate with the SPIFFE ID of an external program, creates its key file with mode 0600, and uses this key for the next certificate as well', async () => {
    await serve()
    const out = join(folder, 'monitor.pem')
    const words = ['--name', 'monitor', '--host', 'm.example', '--host', '192.0.2.9', '--out', out]
    const done = await run(['pki', 'issue', '--config', configPath, ...words, '--days', '30'])
    expect([done.code, done.stderr]).toEqual([0, ''])
    const [own, ...chain] = read(out)
    expect([own.commonName, own.dnsNames, own.ipAddresses, own.uris]).toEqual([
      'monitor',
      ['m.example'],
      ['192.0.2.9'],
      [`spiffe://${trustDomain}/external`],
    ])
    expect(own.notAfterMs - own.notBeforeMs).toBeLessThan(31 * DAY_MS)
    expect(own.isAuthority).toBe(false)
    checkCertificateChain([own, ...chain], anchors(), Date.now())
    const key = readFileSync(`${out}.key`, 'utf8')
    checkKeyMatches(own, key)
    expect(statSync(`${out}.key`).mode & 0o777).toBe(0o600)
    expect(own.native.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2'])
    // A certificate that is issued again before its expiry keeps its key.
    expect((await run(['pki', 'issue', '--config', configPath, ...words])).code).toBe(0)
    expect(readFileSync(`${out}.key`, 'utf8')).toBe(key)
  })

  test('leaves no files behind when the certificate is refused', async () => {
    await serve()
    const out = join(folder, 'refused.pem')
    const issue = (...words: string[]): ReturnType<typeof run> =>
      run(['pki', 'issue', '--config', configPath, '--out', out, ...words])
    for (const words of [
      ['--name', 'x', '--host', 'not a host'],
      ['--name', 'x', '--usage', 'authority'],
      ['--name', 'a'.repeat(65)],
      ['--name', 'x/y'],
    ]) {
      const refused = await issue(...words)
      expect([words, refused.code]).toEqual([words, 1])
      expect(refused.stderr).not.toContain('    at ')
    }
    expect((await issue('--name', 'x', '--days', '398')).code).toBe(2)
    expect([existsSync(out), existsSync(`${out}.key`), mistakes]).toEqual([false, false, []])
  })
})

test.each(['renew', 'reload'])(
  'pki %s reports that the controller is not running',
  async (verb) => {
    const asked = await run(['pki', verb, '--config', configPath])
    expect([asked.code, asked.stderr]).toEqual([
      5,
      expect.stringContaining('no controller is running'),
    ])
  },
)

test('pki reload refuses a leaf that is not a controller certificate, and prints the reason', async () => {
  await serve()
  const plain = await issueLeaf({
    issuer: issuing,
    commonName: 'ctrl1',
    uris: [],
    hosts: ['localhost'],
    validity,
    usages: ['client'],
  })
  writeFileSync(own('cert.pem'), plain.certificatePem)
  const refused = await run(['pki', 'reload', '--config', configPath])
  expect(refused.stderr).toContain('exactly one SPIFFE id')
})
