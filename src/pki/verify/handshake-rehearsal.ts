import { isIP } from 'node:net'
import { duplexPair } from 'node:stream'
import { connect, createServer, type TLSSocket } from 'node:tls'

/** Nothing leaves this process, so it is a matter of milliseconds. */
const REHEARSAL_MS = 5_000

export interface Rehearsed {
  readonly certificatePem: string
  readonly privateKeyPem: string
  /** Whom the other side trusts; null: the public authorities that come with Node. */
  readonly caPem: string | null
  /** DNS name or IP address that the certificate is asked for. */
  readonly host: string
  /** As peers do, who each show their certificate; else the server alone does. */
  readonly isMutual: boolean
}

/**
 * Does in memory what will be done on the network: one TLS 1.3 handshake with the certificate as
 * server and, where it is mutual, as client. So whatever TLS refuses is found here, also what no
 * check of ours knows of.
 * @returns null when it succeeds, else what the library says of it.
 */
export async function rehearseHandshake(rehearsed: Rehearsed): Promise<string | null> {
  const { certificatePem: cert, privateKeyPem: key, caPem, host, isMutual } = rehearsed
  const trust = caPem === null ? {} : { ca: caPem }
  const [near, far] = duplexPair()
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const refused = (error: Error | string): void => resolve(wordsOf(error))
  const timer = setTimeout(() => resolve('the handshake did not end'), REHEARSAL_MS)
  let client: TLSSocket | null = null
  try {
    // Judged below: the library closes the connection without a reason.
    const asked = { requestCert: isMutual, rejectUnauthorized: false }
    const server = createServer({ cert, key, minVersion: 'TLSv1.3', ...trust, ...asked })
    server.on('tlsClientError', refused)
    server.on('secureConnection', (socket) => {
      socket.on('error', refused)
      if (isMutual && !socket.authorized) refused(socket.authorizationError)
      // What the client made of the server arrives as its first bytes, or as its error.
      socket.once('data', () => resolve(null))
    })
    server.emit('connection', far)
    client = connect({
      socket: near,
      servername: serverNameOf(host),
      host,
      ...trust,
      ...(isMutual ? { cert, key } : {}),
    })
    client.on('error', refused)
    client.once('secureConnect', () => client?.write('.'))
    return await promise
  } catch (error) {
    return wordsOf(error)
  } finally {
    clearTimeout(timer)
    client?.destroy()
    near.destroy()
    far.destroy()
  }
}

function wordsOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  // Advice for programmers follows some of them.
  return text.split(';')[0] ?? text
}

/**
 * An address is no server name (RFC 6066, 3), and is looked for in the certificate all the same.
 */
function serverNameOf(host: string): string {
  return isIP(host) === 0 ? host : ''
}
