import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'

import { client } from '../api/support/caller.ts'
import { attackedByCertificates, dataOf, notLoggedIn } from './support/certificates.ts'

// The attack: certificates are public. Somebody presents the certificate of another identity
// without its key: in a header, as a proxy in front of a server would forward it, or by a TLS
// session that the holder has opened.

const attacked = await attackedByCertificates()
const { controller, listener } = attacked

test('a client certificate in a request header is ignored', async () => {
  const { key } = await attacked.newDevice()
  const { raw } = new X509Certificate(key.certificatePem)
  const der = raw.toString('base64')
  const pem = encodeURIComponent(key.certificatePem)
  for (const headers of [
    { 'x-client-certpem': der, 'x-edge-router-proxy-request': '1' },
    { 'x-ssl-client-cert': der },
    { 'x-ssl-client-cert': pem, 'x-ssl-client-verify': 'SUCCESS' },
    { 'x-forwarded-client-cert': `Cert="${pem}"` },
    { 'client-cert': `:${der}:` },
  ]) {
    expect(await attacked.logIn(null, headers), JSON.stringify(Object.keys(headers))).toMatchObject(
      notLoggedIn,
    )
  }
  dataOf(await attacked.logIn(key))
})

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a connection that resumes a TLS session of %s does not inherit the client certificate of that session',
  async (version) => {
    const { key } = await attacked.newDevice()
    const begun = await exchange({ version, cert: key.certificatePem, key: key.privateKeyPem })
    expect(begun.status).toBe(200)
    expect(begun.sessions).not.toEqual([])
    const before = [...controller.state.table('apiSession').ids]
    for (const session of begun.sessions) {
      const resumed = await exchange({ version, session })
      expect(resumed.status).toBe(401)
    }
    expect([...controller.state.table('apiSession').ids]).toEqual(before)
  },
)

interface Exchange {
  readonly version: 'TLSv1.2' | 'TLSv1.3'
  readonly cert?: string
  readonly key?: string
  readonly session?: Buffer
}

/** A log-in by certificate, and the data that could resume its TLS connection. */
function exchange({ version, ...rest }: Exchange): Promise<{ status: number; sessions: Buffer[] }> {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number
    sessions: Buffer[]
  }>()
  const sessions: Buffer[] = []
  const socket = connect({
    host: '127.0.0.1',
    port: listener.port,
    rejectUnauthorized: false,
    minVersion: version,
    maxVersion: version,
    ...rest,
  })
  let text = ''
  socket.setEncoding('utf8')
  socket.on('session', (session) => sessions.push(session))
  socket.on('error', reject)
  socket.on('data', (chunk: string) => (text += chunk))
  socket.on('close', () => {
    const own = socket.getSession()
    if (own !== undefined) sessions.push(own)
    resolve({ status: Number(text.slice(9, 12)), sessions })
  })
  socket.write(
    `POST ${client}/authenticate?method=cert HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n` +
      'content-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  )
  return promise
}
