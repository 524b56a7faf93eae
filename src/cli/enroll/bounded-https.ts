import { once } from 'node:events'
import { request } from '../../lib/node-http.ts'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'

import { type Certificate, faultOfController, parseCertificate } from '../../pki/certificate.ts'
import { HttpsFault, reasonOf } from '../client/https.ts'
import { EnrollmentFault } from './enrollment-fault.ts'

const ANSWER_BYTES_MAX = 2 * 1024 * 1024

export interface BoundedRequest {
  /** `https://host:port`. */
  readonly origin: string
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /**
   * PEM: the chain of the server must lead there, and name its host. Without it `judge` alone
   * decides.
   */
  readonly caPem?: string
  /** Shown in the handshake; both PEM. */
  readonly client?: { readonly certificatePem: string; readonly privateKeyPem: string }
  /**
   * Asked with the certificate of the server before anything is sent; throws an `EnrollmentFault`
   * to refuse it.
   */
  readonly judge: (leaf: Certificate) => void | Promise<void>
  /** From the first packet to the last byte of the answer. */
  readonly timeoutMs: number
}

export interface BoundedAnswer {
  readonly status: number
  /** Of the `date` header, UTC ms; null when there is none. */
  readonly dateMs: number | null
  readonly text: string
}

/**
 * One request on a connection of its own, whose server is known before the first byte of the
 * request. Redirects are not followed: where they lead has not been judged.
 * @throws {HttpsFault} and what `judge` throws.
 */
export async function askBounded(options: BoundedRequest): Promise<BoundedAnswer> {
  const { origin, timeoutMs, judge } = options
  let isSent = false
  let socket: TLSSocket | null = null
  let timer: NodeJS.Timeout | null = null
  try {
    const opened = connectTo(options)
    socket = opened
    timer = setTimeout(() => opened.destroy(timedOut()), timeoutMs)
    await once(opened, 'secureConnect')
    const shown = opened.getPeerX509Certificate()
    if (shown === undefined) throw new Error('presented no certificate')
    const leaf = parseCertificate(Uint8Array.from(shown.raw))
    const fault = faultOfController(leaf)
    if (fault !== null) throw new Error(fault)
    await judge(leaf)
    isSent = true
    return await exchange(opened, new URL(origin).host, options)
  } catch (error) {
    if (error instanceof EnrollmentFault) throw error
    const reason = socket?.errored ?? error
    throw new HttpsFault(reasonOf(reason, timeoutMs), isSent, error)
  } finally {
    if (timer !== null) clearTimeout(timer)
    socket?.destroy()
  }
}

function connectTo({ origin, caPem, client }: BoundedRequest): TLSSocket {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = connect({
    host,
    port: port === '' ? 443 : Number(port),
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    rejectUnauthorized: caPem !== undefined,
    ...(caPem === undefined ? {} : { ca: caPem }),
    ...(client === undefined ? {} : { cert: client.certificatePem, key: client.privateKeyPem }),
  })
  // One may come while nobody waits for the socket, as during the judgement; what follows finds the
  // socket destroyed.
  socket.on('error', () => undefined)
  return socket
}

function exchange(
  socket: TLSSocket,
  host: string,
  { method, path, headers, body = '' }: BoundedRequest,
): Promise<BoundedAnswer> {
  return new Promise((resolve, reject) => {
    const lost = (): void => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' }))
    if (socket.destroyed) {
      lost()
      return
    }
    socket.once('close', lost)
    const asked = request({
      createConnection: () => socket,
      method,
      path,
      headers: {
        host,
        ...(method === 'POST' ? { 'content-length': String(Buffer.byteLength(body)) } : {}),
        ...headers,
      },
    })
    asked.on('error', reject)
    asked.on('response', (answer) => {
      const chunks: Buffer[] = []
      let bytes = 0
      answer.on('error', reject)
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > ANSWER_BYTES_MAX) answer.destroy(new Error('sent a response that is too long'))
        else chunks.push(chunk)
      })
      answer.on('end', () => {
        const date = Date.parse(answer.headers.date ?? '')
        resolve({
          status: answer.statusCode ?? 0,
          dateMs: Number.isNaN(date) ? null : date,
          text: Buffer.concat(chunks).toString('utf8'),
        })
      })
    })
    asked.end(body)
  })
}

function timedOut(): Error {
  return Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })
}
