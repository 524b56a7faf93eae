import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'

import { checkKeyMatches, parseCertificates } from '../../../src/pki/certificate.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { writeSecretFile } from '../../../src/pki/secret-file.ts'
import { client } from '../../api/support/caller.ts'
import { clientKey, type TlsReply } from '../../api/support/tls.ts'
import { runHere } from '../run-here.ts'
import type { Finished } from '../support.ts'
import { EnrollingController } from './support.ts'

// Goal: a holder of a token enrolls with one command, an interrupted run loses nothing, and each
// refusal contains a remedy. Method: the command in this process, with the real listener of a
// controller.

let cluster: EnrollingController
let folder = ''
beforeAll(async () => {
  cluster = await EnrollingController.open()
})
afterAll(() => cluster.close())
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-enroll-'))
})
afterEach(() => {
  cluster.controller.cluster.losesAnswers = false
  cluster.controller.cluster.hasLeader = true
  rmSync(folder, { recursive: true, force: true })
})

const at = (name: string): string => join(folder, name)
const file = (name: string): string => readFileSync(at(name), 'utf8')
const mode = (name: string): string => (statSync(at(name)).mode & 0o777).toString(8)
function tokenFile(jwt: string): string {
  writeFileSync(at('token.jwt'), `${jwt}\n`)
  return at('token.jwt')
}
const enroll = (jwt: string, ...flags: string[]): Promise<Finished> =>
  runHere(['identity', 'enroll', tokenFile(jwt), ...flags])
function refused(done: Finished, sentence: RegExp, code = 1): void {
  expect(done.stderr).toMatch(sentence)
  expect(done.stderr.trimEnd().split('\n')).toHaveLength(1)
  expect(done.code).toBe(code)
}
const logIn = (by: CertificateWithKey): Promise<TlsReply> =>
  cluster.listener.call({ path: `${client}/authenticate?method=cert`, by, body: {} })

interface IdentityFile {
  readonly ztAPI: string
  readonly ztAPIs?: readonly string[]
  readonly id: Readonly<Record<'key' | 'cert' | 'ca', string>>
}
function identityIn(name: string): { file: IdentityFile; by: CertificateWithKey } {
  const parsed = JSON.parse(file(name)) as IdentityFile
  const pem = (text: string): string => text.replace(/^pem:(?=-----BEGIN)/, '')
  const by = { certificatePem: pem(parsed.id.cert), privateKeyPem: pem(parsed.id.key) }
  return { file: parsed, by }
}
function writeClientKey({ certificatePem, privateKeyPem }: CertificateWithKey): string[] {
  writeFileSync(at('client.pem'), certificatePem)
  writeSecretFile(at('client.key'), privateKeyPem)
  return ['--client-cert', at('client.pem'), '--client-key', at('client.key')]
}

describe('a one-time enrollment token', () => {
  test('creates an identity file that only its owner can read and with which the identity can log in', async () => {
    const { id, jwt } = await cluster.newToken({ ott: true })
    const done = await enroll(jwt, '--out', at('laptop.json'))
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain(`token ........ ok: ott, for identity ${id}, until `)
    expect(done.stdout).toMatch(/^enrolled: .*laptop\.json$/m)
    expect(mode('laptop.json')).toBe('600')
    expect(existsSync(at('laptop.json.enrolling'))).toBe(false)
    const { file: identity, by } = identityIn('laptop.json')
    expect(Object.keys(identity)).toEqual(['ztAPI', 'ztAPIs', 'id'])
    expect(identity.ztAPI).toBe(`${cluster.origin}/edge/client/v1`)
    expect(identity.ztAPIs).toEqual([
      identity.ztAPI,
      'https://localhost:1280/edge/client/v1',
      'https://localhost:1281/edge/client/v1',
    ])
    expect(Object.keys(identity.id)).toEqual(['key', 'cert', 'ca'])
    for (const text of Object.values(identity.id)) expect(text).toMatch(/^pem:-----BEGIN /)
    const [leaf] = parseCertificates(by.certificatePem)
    checkKeyMatches(leaf, by.privateKeyPem)
    expect(leaf.commonName).toBe(id)
    expect(identity.id.ca.slice(4)).toContain(cluster.controller.authorities.anchorsPem().trim())
    expect((await logIn(by)).body.data).toMatchObject({ identityId: id })
  })

  test('for an identity with a second factor yields a file with only one controller, and the command prints the reason for this', async () => {
    const { id, jwt } = await cluster.newToken({ ott: true })
    const { primary } = await cluster.ask('GET', '/auth-policies/default')
    const secondary = { requireTotp: true, requireExtJwtSigner: null }
    const policy = { name: 'second factor', primary, secondary }
    const { id: authPolicyId } = await cluster.ask('POST', '/auth-policies', policy)
    await cluster.ask('PATCH', `/identities/${id}`, { authPolicyId })
    const done = await enroll(jwt, '--out', at('phone.json'))
    expect(done.code).toBe(0)
    expect(done.stdout + done.stderr).toContain(
      `only ${cluster.origin} is in the file: the identity needs a second factor`,
    )
    expect(Object.keys(identityIn('phone.json').file)).toEqual(['ztAPI', 'id'])
  })

  test('yields separate files, with an RSA key if requested, and the command lists the files as JSON', async () => {
    const { id, jwt } = await cluster.newToken({ ott: true })
    const flags = ['--cert', at('c.pem'), '--key', at('c.key'), '--ca', at('ca.pem')]
    const done = await enroll(jwt, ...flags, '--key-alg', 'rsa', '--json')
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(JSON.parse(done.stdout)).toMatchObject({
      method: 'ott',
      identityId: id,
      controller: cluster.origin,
      cert: at('c.pem'),
      key: at('c.key'),
      ca: at('ca.pem'),
    })
    expect([mode('c.key'), mode('c.pem')]).toEqual(['600', '644'])
    expect(parseCertificates(file('c.pem'))[0].native.publicKey.asymmetricKeyType).toBe('rsa')
    const by = { certificatePem: file('c.pem'), privateKeyPem: file('c.key') }
    expect((await logIn(by)).status).toBe(200)
  })

  test('is sent again if the leader is lost before it responds, or if there is no leader', async () => {
    const lost = await cluster.newToken({ ott: true })
    const { proposals } = cluster.controller.cluster
    const before = proposals.length
    cluster.controller.cluster.losesAnswers = true
    const enrolling = enroll(lost.jwt, '--out', at('lost.json'))
    await vi.waitFor(() => expect(proposals.length).toBeGreaterThan(before))
    cluster.controller.cluster.losesAnswers = false
    expect((await enrolling).code).toBe(0)
    const early = await cluster.newToken({ ott: true })
    cluster.controller.cluster.hasLeader = false
    const waiting = enroll(early.jwt, '--out', at('early.json'))
    await vi.waitFor(() => expect(existsSync(at('early.json.enrolling'))).toBe(true))
    cluster.controller.cluster.hasLeader = true
    expect((await waiting).code).toBe(0)
    for (const name of ['lost.json', 'early.json']) {
      expect((await logIn(identityIn(name).by)).status).toBe(200)
    }
  })

  test('can be used again with the same key if the command was killed before the response, and yields the same certificate', async () => {
    const { id, jwt } = await cluster.newToken({ ott: true })
    const words = ['identity', 'enroll', tokenFile(jwt), '--out', at('laptop.json')]
    await cluster.killedBeforeResponse(words)
    expect(mode('laptop.json.enrolling')).toBe('600')
    expect(existsSync(at('laptop.json'))).toBe(false)
    const { key } = JSON.parse(file('laptop.json.enrolling')) as { key: string }
    const done = await enroll(jwt, '--out', at('laptop.json'))
    expect([done.code, done.stderr]).toEqual([0, ''])
    const { by } = identityIn('laptop.json')
    expect(by.privateKeyPem).toBe(key)
    expect(existsSync(at('laptop.json.enrolling'))).toBe(false)
    const { data } = (
      await cluster.listener.call({
        method: 'GET',
        path: `/edge/management/v1/identities/${id}/authenticators`,
        token: cluster.token,
      })
    ).body
    expect(data).toMatchObject([{ fingerprint: parseCertificates(by.certificatePem)[0].sha1 }])
  })

  test('can be used again with the key file of the first attempt', async () => {
    const { jwt } = await cluster.newToken({ ott: true })
    const flags = ['--cert', at('c.pem'), '--key', at('c.key'), '--ca', at('ca.pem')]
    expect((await enroll(jwt, ...flags)).code).toBe(0)
    const [certificate, key] = [file('c.pem'), file('c.key')]
    rmSync(at('c.pem'))
    expect((await enroll(jwt, ...flags)).code).toBe(0)
    expect([file('c.pem'), file('c.key')]).toEqual([certificate, key])
  })

  test('is refused after it was used, and then no key remains on disk', async () => {
    const { jwt } = await cluster.newToken({ ott: true })
    expect((await enroll(jwt, '--out', at('a.json'))).code).toBe(0)
    refused(await enroll(jwt, '--out', at('b.json')), /was already used.*new enrollment$/m, 3)
    const flags = ['--cert', at('b.pem'), '--key', at('b.key')]
    refused(await enroll(jwt, ...flags), /was already used/, 3)
    for (const name of ['b.json', 'b.json.enrolling', 'b.pem', 'b.key']) {
      expect(existsSync(at(name)), name).toBe(false)
    }
  })

  test('is refused, with instructions to get a new token, if the controller considers it expired', async () => {
    const other = await EnrollingController.open()
    try {
      const { jwt } = await other.newToken({ ott: true })
      other.controller.clock.advance(4 * 60 * 60_000)
      refused(await enroll(jwt, '--out', at('a.json')), /has expired; .*refresh/, 3)
      expect(existsSync(at('a.json.enrolling'))).toBe(false)
    } finally {
      await other.close()
    }
  })

  test('is not used if an output file exists, unless the user requests to overwrite it', async () => {
    const { jwt } = await cluster.newToken({ ott: true })
    writeFileSync(at('laptop.json'), 'mine')
    refused(await enroll(jwt, '--out', at('laptop.json')), /already exists.*--force/)
    expect(file('laptop.json')).toBe('mine')
    writeFileSync(at('ca.pem'), 'mine')
    const flags = ['--cert', at('c.pem'), '--key', at('c.key'), '--ca', at('ca.pem')]
    refused(await enroll(jwt, ...flags), /ca\.pem already exists/)
    refused(await enroll(jwt, '--out', at('nowhere/laptop.json')), /choose another location/)
    const done = await enroll(jwt, '--out', at('laptop.json'), '--force')
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(mode('laptop.json')).toBe('600')
  })

  test('is not used with a key that an interrupted enrollment with another token left on disk', async () => {
    const { jwt } = await cluster.newToken({ ott: true })
    writeSecretFile(at('a.json.enrolling'), JSON.stringify({ token: 'other', key: 'x' }))
    refused(
      await enroll(jwt, '--out', at('a.json')),
      /an interrupted enrollment with another token/,
    )
    writeSecretFile(at('a.json.enrolling'), 'no JSON')
    refused(await enroll(jwt, '--out', at('a.json')), /not belong to an interrupted enrollment/)
  })
})

describe('other kinds of enrollment tokens', () => {
  test('set the password for a user name; the command reads the password from a file', async () => {
    const { jwt } = await cluster.newToken({ updb: 'field-unit' })
    writeSecretFile(at('password'), 'a long enough one\n')
    const done = await enroll(jwt, '--password-file', at('password'))
    expect([done.code, done.stderr]).toEqual([0, ''])
    const body = { username: 'field-unit', password: 'a long enough one' }
    const reply = await cluster.listener.call({
      path: `${client}/authenticate?method=password`,
      body,
    })
    expect(reply.status).toBe(200)
    refused(await enroll(jwt, '--password-file', at('password')), /was already used/, 3)
  })

  test('for a user name may have taken effect if the response is lost, and the command prints how to check this', async () => {
    const { jwt } = await cluster.newToken({ updb: 'field-unit-3' })
    writeSecretFile(at('password'), 'a long enough one')
    cluster.controller.cluster.losesAnswers = true
    const done = await enroll(jwt, '--password-file', at('password'))
    refused(done, /try to log in with the password, and rerun the same command if that fails/)
  })

  test('for a user name stay valid if the password is invalid, and the command prints why the password is invalid', async () => {
    const { jwt } = await cluster.newToken({ updb: 'field-unit-2' })
    writeSecretFile(at('password'), 'short')
    refused(await enroll(jwt, '--password-file', at('password')), /: password should be at least/)
    writeSecretFile(at('password'), 'a long enough one')
    expect((await enroll(jwt, '--password-file', at('password'))).code).toBe(0)
  })

  test('of the method ottca use the certificate that the CA issued, and write it into an identity file', async () => {
    const { id: caId, key } = await cluster.verifiedCa('workshop')
    const { id, jwt } = await cluster.newToken({ ottca: caId })
    const flags = writeClientKey(await clientKey(key, 'unit', Date.now()))
    const done = await enroll(jwt, ...flags, '--out', at('unit.json'))
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect((await logIn(identityIn('unit.json').by)).body.data).toMatchObject({ identityId: id })
    const foreign = await clientKey((await cluster.verifiedCa('elsewhere')).key, 'unit', Date.now())
    const other = await cluster.newToken({ ottca: caId })
    refused(await enroll(other.jwt, ...writeClientKey(foreign)), /rejected the client cert/)
  })

  test('of a CA create an identity, and a repeated command leaves the identity unchanged', async () => {
    const { id: caId, key } = await cluster.verifiedCa('plant')
    const { text } = await cluster.ask('GET', `/cas/${caId}/jwt`)
    const by = await clientKey(key, 'pump', Date.now())
    const flags = writeClientKey(by)
    const done = await enroll(String(text), ...flags)
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain(`ca, for CA ${caId}, without an end`)
    expect((await logIn(by)).status).toBe(200)
    const again = await enroll(String(text), ...flags, '--out', at('pump.json'))
    expect([again.code, again.stderr]).toEqual([0, ''])
    expect(again.stdout).toContain('already enrolled')
    expect(identityIn('pump.json').by.certificatePem).toBe(by.certificatePem)
  })

  test('of a router are refused by identity enroll', async () => {
    const { id } = await cluster.ask('POST', '/edge-routers', { name: 'gate' })
    const { enrollmentJwt } = await cluster.ask('GET', `/edge-routers/${String(id)}`)
    refused(
      await enroll(String(enrollmentJwt), '--out', at('r.json')),
      /for the router .* router enroll/,
    )
  })
})

describe('identity enroll exits with 2', () => {
  test.each([
    [{ ott: true }, [], /--out FILE, or --cert FILE and --key FILE/],
    [{ ott: true }, ['--out', 'a', '--cert', 'b', '--key', 'c'], /--out FILE, or --cert/],
    [{ ott: true }, ['--cert', 'b'], /go together/],
    [{ ott: true }, ['--out', 'a', '--client-cert', 'c'], /does not support --client-cert/],
    [{ updb: 'nobody-1' }, [], /--password-file FILE, or -/],
    [{ updb: 'nobody-2' }, ['--out', 'a'], /does not support --out/],
  ])('if the enrollment is %j and the arguments are %j', async (enrollment, flags, sentence) => {
    const { jwt } = await cluster.newToken(enrollment)
    refused(await enroll(jwt, ...flags), sentence, 2)
  })

  test('if the token is given on the command line, where other users could read it', async () => {
    const { jwt } = await cluster.newToken({ ott: true })
    const done = await runHere(['identity', 'enroll', jwt, '--out', at('a.json')])
    refused(done, /command lines are visible to other users/, 2)
    expect(done.stderr).not.toContain(jwt)
  })
})
