import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { checkKeyMatches, parseCertificates } from '../../../src/pki/certificate.ts'
import { readEndpoints } from '../../../src/router/controllers/endpoints-file.ts'
import { raiseLevel } from '../../api/support/raise-level.ts'
import { EnrollingController } from '../enroll/support.ts'
import { ConnectProxy } from '../../support/connect-proxy.ts'
import { runHere } from '../run-here.ts'
import type { Finished } from '../support.ts'

// Goal: a router gets its files with one command; an interrupted run loses nothing, and nothing is
// overwritten without `force`. Method: the command in this process, with the real listener of a
// controller.

let cluster: EnrollingController
let folder = ''
let serial = 0
beforeAll(async () => {
  cluster = await EnrollingController.open()
})
afterAll(() => cluster.close())
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-enroll-router-'))
})
afterEach(async () => {
  cluster.controller.cluster.losesAnswers = false
  for (const id of made.splice(0)) await cluster.ask('DELETE', `/edge-routers/${id}`)
  rmSync(folder, { recursive: true, force: true })
})

const at = (name: string): string => join(folder, name)
const file = (name: string): string => readFileSync(at(name), 'utf8')
const mode = (name: string): string => (statSync(at(name)).mode & 0o777).toString(8)
const CONFIG = `v: 3
identity: {cert: r.cert, server_cert: r.server.cert, key: r.key, ca: r.ca}
ctrl: {endpoints: ["tls:ctrl1.test:6262", "tls:ctrl2.test:6262"]}
csr: {country: NO, province: Vestland, locality: Bergen, organization: Anvil, organizationalUnit: Nets, sans: {dns: [r.test], ip: [127.0.0.1], uri: ["urn:r"], email: [r@r.test]}}
`

/** Names of the routers in this test; names must be unique. */
const made: string[] = []

async function newToken(): Promise<{ readonly id: string; readonly jwt: string }> {
  serial += 1
  const id = String((await cluster.ask('POST', '/edge-routers', { name: `gate ${serial}` }))['id'])
  made.push(id)
  return { id, jwt: String((await cluster.ask('GET', `/edge-routers/${id}`))['enrollmentJwt']) }
}

function enrollWords(jwt: string): string[] {
  if (!existsSync(at('router.yml'))) writeFileSync(at('router.yml'), CONFIG)
  writeFileSync(at('token.jwt'), jwt)
  return ['router', 'enroll', at('router.yml'), '--jwt', at('token.jwt')]
}
const enroll = (jwt: string, ...flags: string[]): Promise<Finished> =>
  runHere([...enrollWords(jwt), ...flags])

function refused(done: Finished, sentence: RegExp, code = 1): void {
  expect(done.stderr).toMatch(sentence)
  expect(done.code, done.stderr).toBe(code)
}

/** Router addresses of the test controller. */
const ROUTER_ADDRESSES = ['tls:localhost:1380', 'tls:outside.example:443']

const outputs = ['r.cert', 'r.server.cert', 'r.key', 'r.ca', 'endpoints.yml']
const written = (): string[] => outputs.filter((name) => existsSync(at(name)))

describe('router enroll', () => {
  test('writes the key, the certificates, the CA certificates and the endpoints file', async () => {
    const { id, jwt } = await newToken()
    const done = await enroll(jwt)
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain(`enrolled router gate ${serial} (${id}): ${at('r.cert')}`)
    expect([mode('r.key'), mode('endpoints.yml')]).toEqual(['600', '600'])
    expect(existsSync(at('r.key.enrolling'))).toBe(false)
    const [client] = parseCertificates(file('r.cert'))
    const [server] = parseCertificates(file('r.server.cert'))
    checkKeyMatches(client, file('r.key'))
    checkKeyMatches(server, file('r.key'))
    expect(client.commonName).toBe(id)
    const spiffeId = `spiffe://test.internal/router/${id}`
    expect([client.dnsNames, client.uris]).toEqual([[], [spiffeId]])
    expect(server).toMatchObject({
      dnsNames: ['r.test'],
      ipAddresses: ['127.0.0.1'],
      uris: [spiffeId, 'urn:r'],
      emails: ['r@r.test'],
    })
    expect(server.native.subject.split('\n')).toEqual([
      'C=NO',
      'ST=Vestland',
      'L=Bergen',
      'O=Anvil',
      'OU=Nets',
      `CN=${id}`,
    ])
    expect(file('r.ca')).toContain(cluster.controller.authorities.anchorsPem().trim())
    expect(readEndpoints(at('endpoints.yml'))).toMatchObject({
      known: {
        endpoints: ['tls:ctrl1.test:6262', 'tls:ctrl2.test:6262'],
        controllers: [],
        removed: [],
        apis: [cluster.origin],
      },
    })
  })

  const NO_CONTROLLER = CONFIG.replace(/^ctrl: .*$/m, 'ctrl: {endpointsFile: endpoints.yml}')

  test('writes the controllers in the token into the endpoints file if the configuration has none', async () => {
    const { jwt } = await newToken()
    const claims = JSON.parse(
      Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString(),
    ) as object
    expect(claims).toMatchObject({ ctrls: ROUTER_ADDRESSES })
    writeFileSync(at('router.yml'), NO_CONTROLLER)
    const before = await runHere(['router', 'check', at('router.yml')])
    expect([before.code, before.stdout]).toEqual([
      0,
      expect.stringContaining("note: ctrl names no controller: 'flotilla router enroll' writes"),
    ])
    expect((await enroll(jwt)).code).toBe(0)
    expect(readEndpoints(at('endpoints.yml'))).toMatchObject({
      known: { endpoints: ROUTER_ADDRESSES },
    })
    const after = await runHere(['router', 'check', at('router.yml')])
    expect([after.code, after.stderr]).toEqual([0, ''])
    expect(after.stdout).not.toContain('names no controller')
    unlinkSync(at('endpoints.yml'))
    refused(
      await runHere(['router', 'check', at('router.yml')]),
      /ctrl: names no controller, and .*endpoints\.yml does not exist/,
    )
    refused(
      await runHere(['router', 'run', at('router.yml')]),
      /ctrl: names no controller, and .*endpoints\.yml does not exist/,
    )
  })

  test('exits with 2 if neither the configuration nor the token contains a controller, and writes no files', async () => {
    const { jwt } = await newToken()
    const [head = '', payload = '', signature = ''] = jwt.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object
    const without = Buffer.from(JSON.stringify({ ...claims, ctrls: [] })).toString('base64url')
    writeFileSync(at('router.yml'), NO_CONTROLLER)
    refused(
      await enroll(`${head}.${without}.${signature}`),
      /neither the configuration nor the token/,
      2,
    )
    expect(written()).toEqual([])
  })

  test('reaches the controller through the proxy in the configuration', async () => {
    await using proxy = await ConnectProxy.open()
    writeFileSync(
      at('router.yml'),
      `${CONFIG}proxy: {type: http, address: "127.0.0.1:${proxy.port}"}\n`,
    )
    expect((await enroll((await newToken()).jwt)).code).toBe(0)
    expect(new Set(proxy.servers)).toEqual(new Set([new URL(cluster.origin).host]))
  })

  test('takes no controllers from a token that was edited', async () => {
    const { jwt } = await newToken()
    const [head = '', payload = '', signature = ''] = jwt.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object
    const edited = { ...claims, ctrls: ['tls:stranger.test:6262'] }
    const text = Buffer.from(JSON.stringify(edited)).toString('base64url')
    writeFileSync(at('router.yml'), NO_CONTROLLER)
    refused(await enroll(`${head}.${text}.${signature}`), /truncated or edited/)
    expect(written()).toEqual([])
  })

  test.each([
    ['EC:P-384', 'ec'],
    ['RSA:2048', 'rsa'],
  ])(
    'creates a key of the type %s, and prints the router and its controller as JSON',
    async (algorithm, kind) => {
      const { id, jwt } = await newToken()
      const done = await enroll(jwt, '--key-alg', algorithm, '--json')
      expect([done.code, done.stderr]).toEqual([0, ''])
      const name = `gate ${serial}`
      expect(JSON.parse(done.stdout)).toMatchObject({
        routerId: id,
        name,
        controller: cluster.origin,
      })
      const [leaf] = parseCertificates(file('r.cert'))
      expect(leaf.native.publicKey.asymmetricKeyType).toBe(kind)
    },
  )

  test('enrolls at another address of the controller that signed the token, and writes this address into the endpoints file for later renewals', async () => {
    const relay = createServer((socket) => {
      const onward = connect(cluster.listener.port, '127.0.0.1')
      for (const one of [socket, onward]) one.on('error', () => undefined)
      socket.pipe(onward).pipe(socket)
    })
    await new Promise<void>((done) => relay.listen(0, '127.0.0.1', done))
    try {
      const origin = `https://127.0.0.1:${(relay.address() as AddressInfo).port}`
      const { id, jwt } = await newToken()
      const done = await enroll(jwt, '--controller', `${origin}/`, '--json')
      expect(JSON.parse(done.stdout)).toMatchObject({ routerId: id, controller: origin })
      expect(readEndpoints(at('endpoints.yml'))).toMatchObject({ known: { apis: [origin] } })
    } finally {
      relay.close()
    }
  })

  test('sends nothing to a given address if a controller other than the signer of the token responds there', async () => {
    const other = await EnrollingController.open()
    try {
      const { jwt } = await newToken()
      refused(await enroll(jwt, '--controller', other.origin), /did not sign this token/)
      expect(written()).toEqual([])
      const form = /^flotilla: --controller: expected the address of a controller/
      refused(await enroll(jwt, '--controller', 'ctrl1:1280'), form, 2)
    } finally {
      await other.close()
    }
  })

  test('sends the enrollment again if the leader is lost before it responds', async () => {
    const { jwt } = await newToken()
    cluster.controller.cluster.losesAnswers = true
    const { code } = await enroll(jwt)
    cluster.controller.cluster.losesAnswers = false
    expect([code, written()]).toEqual([0, outputs])
  })

  test('resumes with the same key if it was killed before the response', async () => {
    const { jwt } = await newToken()
    await cluster.killedBeforeResponse(enrollWords(jwt))
    expect([written(), mode('r.key.enrolling')]).toEqual([[], '600'])
    const { key } = JSON.parse(file('r.key.enrolling')) as { key: string }
    expect((await enroll(jwt)).code).toBe(0)
    expect(file('r.key')).toBe(key)
    expect(written()).toEqual(outputs)
  })

  test('resumes after an interruption between writing its files, although the token has been used', async () => {
    const { jwt } = await newToken()
    expect((await enroll(jwt)).code).toBe(0)
    const [cert, key] = [file('r.cert'), file('r.key')]
    for (const name of ['r.cert', 'r.server.cert', 'endpoints.yml']) unlinkSync(at(name))
    const { hash } = await import('node:crypto')
    const secret = String(
      JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString())['jti'],
    )
    const cutOff = JSON.stringify({ token: hash('sha256', secret), key })
    writeFileSync(at('r.key.enrolling'), cutOff, { mode: 0o600 })
    const done = await enroll(jwt)
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect([file('r.cert'), file('r.key')]).toEqual([cert, key])
    expect(written()).toEqual(outputs)
  })

  test('leaves the token unused if an output file exists, and overwrites the file only with --force', async () => {
    const { jwt } = await newToken()
    writeFileSync(at('r.server.cert'), 'mine')
    refused(await enroll(jwt), /r\.server\.cert already exists.*--force/)
    expect(file('r.server.cert')).toBe('mine')
    expect(existsSync(at('r.key.enrolling'))).toBe(false)
    expect((await enroll(jwt, '--force')).code).toBe(0)
    expect(file('r.server.cert')).toContain('BEGIN CERTIFICATE')
  })

  test('leaves the files of an enrolled router unchanged if the token has been used', async () => {
    const { jwt } = await newToken()
    await enroll(jwt)
    const before = outputs.map(file)
    refused(await enroll(jwt, '--force'), /the token was already used/, 3)
    expect(outputs.map(file)).toEqual(before)
    expect(existsSync(at('r.key.enrolling'))).toBe(false)
  })

  test('refuses the token of another router, and replaces the router with a warning only with --force', async () => {
    const first = await newToken()
    await enroll(first.jwt)
    const before = outputs.map(file)
    const other = await newToken()
    refused(
      await enroll(other.jwt),
      new RegExp(
        `r\\.cert is the certificate of router ${first.id}, but the token is for router ${other.id}; `,
      ),
    )
    expect(outputs.map(file)).toEqual(before)
    const forced = await enroll(other.jwt, '--force')
    expect(forced.code).toBe(0)
    expect(forced.stderr).toContain(
      `warning: the files were those of router ${first.id}, and are now those of router gate ${serial} (${other.id});`,
    )
    expect(parseCertificates(file('r.cert'))[0].commonName).toBe(other.id)
  })

  test('enrolls again with a new token and a new key', async () => {
    const { id, jwt } = await newToken()
    await enroll(jwt)
    const before = file('r.key')
    await cluster.ask('POST', `/edge-routers/${id}/re-enroll`, {})
    const next = String((await cluster.ask('GET', `/edge-routers/${id}`))['enrollmentJwt'])
    const again = await enroll(next, '--force')
    expect([again.code, again.stderr]).toEqual([0, ''])
    expect(file('r.key')).not.toBe(before)
  })

  test('refuses the token of an identity, and a token with a changed letter', async () => {
    const { jwt } = await cluster.newToken({ ott: true })
    refused(await enroll(jwt), /the token is for "ott", not for a router/)
    const [head = '', payload = '', signature = ''] = (await newToken()).jwt.split('.')
    const changed = (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1)
    refused(await enroll(`${head}.${payload}.${changed}`), /truncated or edited/)
    expect(written()).toEqual([])
  })

  test.each([
    ['without csr', CONFIG.replace(/^csr: .*\n/m, ''), /has no section csr/],
    [
      'without server_cert',
      CONFIG.replace(' server_cert: r.server.cert,', ''),
      /identity\.server_cert is missing/,
    ],
    [
      'with a private key as PEM text',
      CONFIG.replace('key: r.key', 'key: "pem:-----BEGIN X"'),
      /identity\.key is PEM text/,
    ],
    [
      'with the same file for two purposes',
      CONFIG.replace('ca: r.ca', 'ca: r.cert'),
      /for two things/,
    ],
    ['with a configuration error', CONFIG.replace('v: 3', 'v: 4'), /:1: v: expected 3/],
  ])('exits with 2 for a configuration %s, and writes no files', async (_, text, sentence) => {
    writeFileSync(at('router.yml'), text)
    refused(await enroll((await newToken()).jwt), sentence, 2)
    expect(written()).toEqual([])
  })
})

test('router enroll warns if the certificate lacks a configured host name because another router has that name', async () => {
  await raiseLevel(cluster.controller)
  expect((await enroll((await newToken()).jwt)).stderr).toBe('')
  rmSync(folder, { recursive: true })
  folder = mkdtempSync(join(tmpdir(), 'flotilla-enroll-router-'))
  const { id, jwt } = await newToken()
  const second = await enroll(jwt, '--json')
  expect(second.code).toBe(0)
  expect(second.stderr).toMatch(/does not name r\.test, which another router has; .*allowedNames/)
  expect(JSON.parse(second.stdout)).toMatchObject({ routerId: id, namesLeftOut: ['r.test'] })
  const [server] = parseCertificates(file('r.server.cert'))
  expect([server.dnsNames, server.ipAddresses]).toEqual([[], ['127.0.0.1']])
})
