import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { sendHttpsRequest } from '../../../src/cli/client/https-request.ts'
import { EnrollmentServer } from '../../../src/cli/enroll/enrollment-server.ts'
import {
  checkTokenSignature,
  checkTokenTime,
  readEnrollmentToken,
} from '../../../src/cli/enroll/enrollment-token.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { encodeCertsOnlyPkcs7, readCertsOnly } from '../../../src/pki/certs-only.ts'
import {
  parseCertificate,
  parseCertificates,
  parsePrivateKey,
} from '../../../src/pki/certificate.ts'
import { newCa } from '../../support/authorities.ts'
import { runHere } from '../run-here.ts'

// Goal: only the controller that signed a token receives data of the enrolling client, and no
// server can make the command wait forever, use unlimited memory or follow a redirect. Method:
// faulty servers, with the right certificate or another one.

let folder = ''
let servers: { close: () => void }[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-enroll-'))
})
afterEach(() => {
  for (const server of servers) server.close()
  servers = []
  rmSync(folder, { recursive: true, force: true })
})

const DAY_MS = 24 * 60 * 60_000
const validity = validityStartingAt(Date.now(), DAY_MS)
const root = newCa('somebody', Date.now())
const newLeaf = async (hosts = ['127.0.0.1']): Promise<CertificateWithKey> =>
  issueLeaf({
    issuer: await root,
    commonName: 'ctrl1',
    uris: [],
    usages: ['server'],
    validity,
    hosts,
  })
const sign = (
  { privateKeyPem }: CertificateWithKey,
  claims: Record<string, unknown>,
  alg = 'ES256',
): Promise<string> =>
  new SignJWT({ sub: 'me', em: 'ott', jti: 'secret', aud: [''], ...claims })
    .setProtectedHeader({ alg, typ: 'JWT' })
    .sign(parsePrivateKey(privateKeyPem))

async function serve(leaf: CertificateWithKey, listener: RequestListener): Promise<string> {
  const options = { cert: leaf.certificatePem, key: leaf.privateKeyPem }
  const server: Server = createServer(options, listener)
  servers.push({
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}
async function authorities(): Promise<string> {
  return encodeCertsOnlyPkcs7([parseCertificate((await root).certificatePem)]).toString('base64')
}

async function enroll(jwt: string): Promise<{ code: number | null; stderr: string }> {
  writeFileSync(join(folder, 'token.jwt'), jwt)
  const out = join(folder, 'me.json')
  const done = await runHere(['identity', 'enroll', join(folder, 'token.jwt'), '--out', out])
  expect(existsSync(out)).toBe(false)
  return done
}

describe('an enrollment token', () => {
  const claims = { iss: 'https://127.0.0.1:1', exp: Math.floor(Date.now() / 1000) + 60 }

  test('is verified only with the key of the server’s certificate, even if the token names another algorithm', async () => {
    const leaf = await newLeaf()
    const [certificate] = parseCertificates(leaf.certificatePem)
    const jwt = await sign(leaf, claims)
    await checkTokenSignature(readEnrollmentToken(jwt), certificate)
    const [head = '', payload = '', signature = ''] = jwt.split('.')
    const base64 = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString('base64url')
    const edited = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), sub: 'you' }
    const hmac = await new SignJWT({ ...claims, sub: 'me', em: 'ott', jti: 'x' })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(certificate.native.publicKey.export({ type: 'spki', format: 'pem' })))
    const rsaHead = base64({ alg: 'RS256' })
    for (const forged of [
      `${head}.${base64(edited)}.${signature}`,
      `${base64({ alg: 'none' })}.${payload}.AA`,
      `${rsaHead}.${payload}.${signature}`,
      hmac,
      await sign(await newLeaf(), claims),
    ]) {
      await expect(checkTokenSignature(readEnrollmentToken(forged), certificate)).rejects.toThrow(
        /did not sign this token/,
      )
    }
  })

  test('with the right key ID but a wrong signature is reported as truncated or edited', async () => {
    const leaf = await newLeaf()
    const [certificate] = parseCertificates(leaf.certificatePem)
    const token = readEnrollmentToken(await sign(await newLeaf(), claims))
    await expect(
      checkTokenSignature({ ...token, keyId: certificate.sha1 }, certificate),
    ).rejects.toThrow(/truncated or edited; copy it again/)
  })

  test('is refused from its expiry on, unless it has none', async () => {
    const token = readEnrollmentToken(await sign(await newLeaf(), claims))
    const endMs = claims.exp * 1000
    expect(() => checkTokenTime(token, endMs - 1)).not.toThrow()
    expect(() => checkTokenTime(token, endMs)).toThrow(
      /expired at .*; an administrator can refresh/,
    )
    expect(() => checkTokenTime({ ...token, expiresAtMs: null }, endMs)).not.toThrow()
  })

  test.each([
    ['', /not an enrollment token/],
    ['a.b', /not an enrollment token/],
    ['a.b.c', /malformed/],
    [`${'a'.repeat(20_000)}.b.c`, /not an enrollment token/],
  ])('is refused if it is malformed: %#', (text, sentence) => {
    expect(() => readEnrollmentToken(text)).toThrow(sentence)
  })

  test.each([
    [{ iss: 'http://127.0.0.1' }, /names no controller/],
    [{ iss: 'https://user@127.0.0.1' }, /names no controller/],
    [{ iss: 'https://127.0.0.1/elsewhere' }, /names no controller/],
    [{ iss: 'https://127.0.0.1?x=1' }, /names no controller/],
    [{ iss: 7 }, /names no controller/],
    [{ iss: claims.iss, em: '' }, /invalid "em"/],
    [{ iss: claims.iss, jti: 'x'.repeat(300) }, /invalid "jti"/],
    [{ iss: claims.iss, sub: '\u001b[2Jme' }, /invalid "sub"/],
  ])('is refused if one of its claims is invalid: %j', async (rest, sentence) => {
    const jwt = await sign(await newLeaf(), { ...claims, ...rest })
    expect(() => readEnrollmentToken(jwt)).toThrow(sentence)
  })
})

describe('a server at the address in an enrollment token', () => {
  test('receives nothing if its certificate did not sign the token', async () => {
    const asked: string[] = []
    const iss = await serve(await newLeaf(), ({ url = '' }, answer) => {
      asked.push(url)
      answer.end()
    })
    const done = await enroll(await sign(await newLeaf(), { iss }))
    expect(done.stderr).toMatch(/did not sign this token: .*nothing was sent/)
    expect([done.code, asked]).toEqual([1, []])
    expect(existsSync(join(folder, 'me.json.enrolling'))).toBe(false)
  })

  test('cannot redirect the client to another server', async () => {
    const leaf = await newLeaf()
    let followed = 0
    const elsewhere = await serve(leaf, (_request, answer) => {
      followed += 1
      answer.end()
    })
    const iss = await serve(leaf, (_request, answer) => {
      answer.writeHead(302, { location: `${elsewhere}/edge/client/v1/.well-known/est/cacerts` })
      answer.end()
    })
    const done = await enroll(await sign(leaf, { iss }))
    expect(done.stderr).toMatch(/status 302 instead of CA certificates/)
    expect([done.code, followed]).toEqual([1, 0])
  })

  test.each([
    ['no certificates', 'AAAA'],
    ['nothing', ''],
    ['no base64', '<html>'],
  ])('is refused if it publishes %s', async (_what, text) => {
    const leaf = await newLeaf()
    const iss = await serve(leaf, (_request, answer) => void answer.end(text))
    expect((await enroll(await sign(leaf, { iss }))).stderr).toMatch(/no valid CA certificates/)
  })

  test('receives nothing if its certificate changes before the enrollment', async () => {
    const leaf = await newLeaf()
    const [own, other] = [leaf, await newLeaf()]
    const asked: string[] = []
    const body = await authorities()
    const server = createServer(
      { cert: own.certificatePem, key: own.privateKeyPem },
      ({ url = '' }, answer) => {
        asked.push(url)
        server.setSecureContext({ cert: other.certificatePem, key: other.privateKeyPem })
        answer.end(body)
      },
    )
    servers.push(server)
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const iss = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    const done = await enroll(await sign(leaf, { iss }))
    expect(done.stderr).toMatch(/a different certificate than before/)
    expect(asked).toHaveLength(1)
  })

  test('does not receive the token if its certificate does not contain the host name', async () => {
    const leaf = await newLeaf(['elsewhere.test'])
    const asked: string[] = []
    const body = await authorities()
    const iss = await serve(leaf, ({ url = '' }, answer) => {
      asked.push(url)
      answer.end(body)
    })
    const done = await enroll(await sign(leaf, { iss }))
    expect(done.stderr).toMatch(/certificate without this address/)
    expect(asked).toHaveLength(1)
  })

  test('does not receive the token if the CA certificates that it publishes did not issue its certificate', async () => {
    const leaf = await newLeaf()
    const other = await newCa('other', Date.now())
    const body = encodeCertsOnlyPkcs7([parseCertificate(other.certificatePem)]).toString('base64')
    const asked: string[] = []
    const iss = await serve(leaf, ({ url = '' }, answer) => {
      asked.push(url)
      answer.end(body)
    })
    expect((await enroll(await sign(leaf, { iss }))).stderr).toMatch(/certificate of an unknown CA/)
    expect(asked).toHaveLength(1)
  })

  test('cannot send control characters to the terminal in the text of a refusal', async () => {
    const leaf = await newLeaf()
    const body = await authorities()
    const iss = await serve(leaf, ({ method }, answer) => {
      if (method === 'GET') {
        answer.end(body)
        return
      }
      const message = `\u001b[2J\n${'x'.repeat(5000)}`
      answer.writeHead(409)
      answer.end(JSON.stringify({ error: { code: 'WHAT', message } }))
    })
    const { stderr } = await enroll(await sign(leaf, { iss }))
    expect(stderr).not.toContain('\u001b')
    expect(stderr.length).toBeLessThan(800)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  test('is disconnected if its response is too large or never ends', async () => {
    const leaf = await newLeaf()
    const origin = await serve(leaf, ({ url }, answer) => {
      if (url === '/endless') {
        const more = (error?: Error | null): void => {
          if ((error ?? null) === null && !answer.destroyed)
            answer.write(Buffer.alloc(64 * 1024), more)
        }
        more()
      } else answer.write('a')
    })
    const asked = { method: 'GET', verified: 'nothing' } as const
    await expect(
      sendHttpsRequest({ ...asked, url: `${origin}/endless`, timeoutMs: 20_000 }),
    ).rejects.toThrow(/too long/)
    await expect(
      sendHttpsRequest({ ...asked, url: `${origin}/slow`, timeoutMs: 200 }),
    ).rejects.toThrow(/did not respond within 0.2 s/)
  })

  test('is reported with the cause if it does not speak TLS, refuses the handshake, does not respond or is unreachable', async () => {
    const silent = createTcp((socket) => void socket.on('error', () => undefined))
    const plain = createTcp((socket) => void socket.end('220 mail\r\n'))
    // Like the cluster port of a controller, this server accepts only one application protocol.
    const own = await newLeaf()
    const key = { cert: own.certificatePem, key: own.privateKeyPem }
    const mesh = createTls({ ...key, ALPNProtocols: ['h2'] })
    mesh.on('tlsClientError', () => undefined)
    servers.push(silent, plain, mesh)
    const portOf = async (server: typeof silent): Promise<string> => {
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
      return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    }
    const asked = { method: 'GET', verified: 'nothing' } as const
    const origin = await portOf(silent)
    await expect(sendHttpsRequest({ ...asked, url: origin, timeoutMs: 200 })).rejects.toThrow(
      /did not respond/,
    )
    const leaf = await newLeaf()
    for (const [iss, sentence] of [
      [await portOf(plain), /does not speak TLS/],
      [await portOf(mesh), /refused the TLS handshake; use the HTTPS port of the controller/],
      ['https://127.0.0.1:1', /refused the connection/],
      ['https://nobody.invalid', /cannot be resolved/],
    ] as const) {
      await expect(
        EnrollmentServer.meet(readEnrollmentToken(await sign(leaf, { iss }))),
      ).rejects.toThrow(sentence)
    }
  })
})

test('readCertsOnly reads what encodeCertsOnlyPkcs7 writes, and refuses it if it is truncated or followed by other bytes', async () => {
  const all = [await root, await newCa('b', Date.now())].map((one) =>
    parseCertificate(one.certificatePem),
  )
  const der = encodeCertsOnlyPkcs7(all)
  expect(
    readCertsOnly(der)
      .map(({ sha256 }) => sha256)
      .sort(),
  ).toEqual(all.map(({ sha256 }) => sha256).sort())
  for (const bad of [der.subarray(0, -1), Buffer.concat([der, der]), Buffer.alloc(9, 0x30)]) {
    expect(() => readCertsOnly(bad)).toThrow(/PKCS #7/)
  }
})
