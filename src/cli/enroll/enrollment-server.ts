import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkKeyMatches,
  parseCertificates,
} from '../../pki/certificate.ts'
import type { HttpProxy } from '../../lib/runtime/http-proxy.ts'
import { parseSpiffeId } from '../../pki/spiffe.ts'
import { readCertsOnly, sortRootsLast } from '../../pki/certs-only.ts'
import { createCertificateRequest } from '../../pki/authority/certificate-request.ts'
import {
  sendHttpsRequest,
  type HttpsResponse,
  HttpsFault,
  type HttpsRequest,
} from '../client/https-request.ts'
import { toApiRefusal } from '../client/api-refusal.ts'
import { newCommandRequestId } from '../client/api-client.ts'
import {
  ClusterClient,
  type ClusterRequest,
  type ClusterResponse,
  type MemberTarget,
} from '../../client/cluster-client.ts'
import { ApiRefusalError } from '../../client/client-errors.ts'
import { MemberOrder } from '../../client/member-order.ts'
import { commandTimeouts } from '../../client/timeouts.ts'
import { systemClock } from '../../lib/clock.ts'
import { EnrollmentFault, EnrollmentRefusedError } from './enrollment-fault.ts'
import { checkTokenSignature, type EnrollmentToken } from './enrollment-token.ts'

const CLIENT_API = '/edge/client/v1'
const TIMEOUT_MS = 15_000
const ANSWER_BYTES_MAX = 2 * 1024 * 1024

/** Certificate chain, leaf certificate first. */
export type CertificateChain = readonly [Certificate, ...Certificate[]]

/** A client certificate that a third-party CA has issued, with its key. */
export interface ClientCertificateWithKey {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

type EnrollmentRequest = ClusterRequest & Pick<HttpsRequest, 'body' | 'text' | 'client'>

/**
 * Methods for which a request may be sent again after its outcome became unknown, because a
 * repetition with the same key or certificate changes nothing further.
 */
const repeatableMethods: ReadonlySet<string> = new Set(['ott', 'erott', 'trott', 'ca'])

/** The controller that created a token, after it has proved that it signed the token. */
export class EnrollmentServer {
  readonly #token: EnrollmentToken
  readonly #proxy: HttpProxy | null
  readonly #publicKeySha256: Uint8Array
  /** The CA certificates of the cluster, PEM. */
  readonly caPem: string
  readonly caCount: number
  /** Time in the controller's response, UTC ms; null when the response contains no time. */
  readonly dateMs: number | null
  /**
   * Trust domain of the SPIFFE id in the controller's certificate; null when the certificate has no
   * SPIFFE id.
   */
  readonly trustDomain: string | null

  private constructor(
    token: EnrollmentToken,
    proxy: HttpProxy | null,
    known: { leaf: Certificate; authorities: Certificate[]; dateMs: number | null },
  ) {
    this.#token = token
    this.#proxy = proxy
    this.#publicKeySha256 = known.leaf.publicKeySha256
    this.trustDomain = parseSpiffeId(known.leaf.uris[0] ?? '')?.trustDomain ?? null
    this.caPem = sortRootsLast(known.authorities)
      .map(({ pem }) => `${pem.trim()}\n`)
      .join('')
    this.caCount = known.authorities.length
    this.dateMs = known.dateMs
  }

  /**
   * Requests the CA certificates from the address in the token. Before it sends the request, it
   * verifies that the server has the key that signed the token.
   * @throws {EnrollmentFault}
   */
  static async meet(
    token: EnrollmentToken,
    proxy: HttpProxy | null = null,
  ): Promise<EnrollmentServer> {
    let known: Certificate | null = null
    const { status, dateMs, text } = await asked(
      token.origin,
      {
        url: `${token.origin}${CLIENT_API}/.well-known/est/cacerts`,
        method: 'GET',
        headers: { accept: 'application/pkcs7-mime' },
        verified: 'nothing',
        proxy,
        judge: async (leaf) => {
          await checkTokenSignature(token, leaf)
          known = leaf
        },
      },
      null,
    )
    if (known === null) throw new EnrollmentFault(`${token.origin}: certificate not verified`)
    if (status !== 200) {
      throw new EnrollmentFault(
        `${token.origin}: response status ${status} instead of CA certificates; ask an administrator whether it serves the client API`,
      )
    }
    return new EnrollmentServer(token, proxy, {
      leaf: known,
      authorities: authoritiesIn(token.origin, text),
      dateMs,
    })
  }

  /**
   * Requests a certificate for this key; the same token and key get the same certificate again.
   * @returns the chain, leaf first.
   */
  async ott(privateKeyPem: string): Promise<[Certificate, ...Certificate[]]> {
    const body = await createCertificateRequest({ privateKeyPem, id: this.#token.subject })
    const answer = await this.#enroll({
      text: body,
      headers: { 'content-type': 'application/x-pem-file' },
    })
    return this.#certificatesIn(answer, privateKeyPem)
  }

  /**
   * Requests both certificates of a router; the same token and keys get the same certificates
   * again.
   * @returns two chains, each leaf first, and the name of the router; null from OpenZiti's
   * controllers, which send no name.
   */
  async router(
    requests: { readonly certCsr: string; readonly serverCertCsr: string },
    keys: { readonly privateKeyPem: string; readonly serverKeyPem: string },
  ): Promise<{
    readonly client: CertificateChain
    readonly server: CertificateChain
    readonly name: string | null
  }> {
    const answer = await this.#enroll({ body: requests })
    const { name } = answer
    return {
      name: typeof name === 'string' && name !== '' ? name : null,
      client: this.#certificatesIn(answer, keys.privateKeyPem),
      server: this.#certificatesIn({ cert: answer['serverCert'] }, keys.serverKeyPem),
    }
  }

  async ottca(client: ClientCertificateWithKey): Promise<void> {
    await this.#enroll({ client, text: '' })
  }

  async ca(client: ClientCertificateWithKey, name: string | undefined): Promise<void> {
    await this.#enroll({ client, body: name === undefined ? {} : { name } })
  }

  async updb(password: string): Promise<void> {
    await this.#enroll({ body: { password } })
  }

  /**
   * Sends the enrollment, and sends it again while the cluster has no leader; after an unknown
   * outcome only if the method is repeatable.
   */
  async #enroll(request: EnrollmentRequest): Promise<Readonly<Record<string, unknown>>> {
    const { origin, method } = this.#token
    let sent = 0
    const client = new ClusterClient<EnrollmentRequest>({
      members: new MemberOrder([origin], systemClock),
      session: { token: () => null, renewed: () => Promise.resolve(null) },
      send: (next, to) => this.#send(next, to, (sent += 1) > 1),
      waits: commandTimeouts,
      clock: systemClock,
      requestId: newCommandRequestId,
      readsOwnWrites: false,
    })
    const isOnceOnly = !repeatableMethods.has(method)
    try {
      const { body } = await client.ask({ ...request, method: 'POST', isOnceOnly })
      const data = (body as { data?: unknown } | null)?.data
      if (typeof data === 'object' && data !== null) return data as Record<string, unknown>
    } catch (error) {
      throw error instanceof ApiRefusalError ? this.#faultOf(error) : error
    }
    throw new EnrollmentFault(`${origin}: malformed response; is it a controller?`)
  }

  /**
   * Sends the enrollment once. Verifies the server with the CA certificates from the controller, as
   * an SDK does, and requires that the controller presents the same key as before.
   * @param isRepeated true if the request was sent before, so that it may have had an effect.
   */
  async #send(
    { body, text, client, headers }: EnrollmentRequest,
    to: MemberTarget,
    isRepeated: boolean,
  ): Promise<ClusterResponse> {
    const { origin, method, secret } = this.#token
    const query = new URLSearchParams({ method, ...(method === 'ca' ? {} : { token: secret }) })
    const answer = await asked(
      origin,
      {
        body,
        text,
        ...(client === undefined ? {} : { client }),
        headers: { ...to.headers, ...headers },
        url: `${origin}${CLIENT_API}/enroll?${query.toString()}`,
        method: 'POST',
        caPem: this.caPem,
        proxy: this.#proxy,
        judge: ({ publicKeySha256 }) => {
          if (Buffer.compare(publicKeySha256, this.#publicKeySha256) === 0) return
          const outcome = isRepeated ? 'this time nothing was sent' : 'nothing was sent'
          throw new EnrollmentFault(
            `${origin} presented a different certificate than before; ${outcome}, run this again`,
          )
        },
      },
      { text: remedyOf(this.#token), isRepeated },
    )
    return {
      status: answer.status,
      body: answer.body,
      header: (name) => [answer.headers[name] ?? null].flat()[0] ?? null,
    }
  }

  #faultOf(error: ApiRefusalError): EnrollmentFault {
    const { origin } = this.#token
    const { status, code } = error
    const sentence =
      code === 'OUTCOME_UNKNOWN'
        ? 'the leader was lost before it answered'
        : toApiRefusal(error).message
    if (status >= 400 && status < 500 && status !== 429 && code !== '') {
      return new EnrollmentRefusedError(code, this.#refusal(code, sentence))
    }
    return new EnrollmentFault(`${origin}: ${sentence}; ${remedyOf(this.#token)}`)
  }

  #refusal(code: string, sentence: string): string {
    const { origin } = this.#token
    switch (code) {
      case 'INVALID_ENROLLMENT_TOKEN':
        return 'the token was already used, refreshed or revoked; ask an administrator for a new enrollment'
      case 'ENROLLMENT_EXPIRED':
        return 'the token has expired; an administrator can refresh the enrollment to create a new token'
      case 'ENROLLMENT_CA_NOT_VALID':
        return 'the CA of this enrollment is not verified, or not enabled for enrollment by one-time token; an administrator can change that'
      case 'CERT_FAILED_VALIDATION':
      case 'CERTIFICATE_FAILED_VALIDATION':
        return `${origin} rejected the client certificate: ${sentence}`
      default:
        return `${origin}: ${sentence}`
    }
  }

  #certificatesIn(
    { cert }: Readonly<Record<string, unknown>>,
    privateKeyPem: string,
  ): [Certificate, ...Certificate[]] {
    try {
      const chain = parseCertificates(typeof cert === 'string' ? cert : '')
      checkKeyMatches(chain[0], privateKeyPem)
      return chain
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error
      const message = `${this.#token.origin}: it issued an unusable certificate (${error.message}); ask an administrator for a new enrollment`
      throw new EnrollmentFault(message, { cause: error })
    }
  }
}

/** Remedy if the outcome is unknown, so that the token may have been used. */
function remedyOf({ method }: EnrollmentToken): string {
  return method === 'updb'
    ? 'try to log in with the password, and rerun the same command if that fails'
    : 'rerun the same command to resume'
}

/**
 * @param remedy advice that the message contains if this request, or an earlier one with the same
 * content, may have reached the controller, which may have executed it.
 */
async function asked(
  origin: string,
  request: Omit<HttpsRequest, 'timeoutMs'>,
  remedy: { readonly text: string; readonly isRepeated: boolean } | null,
): Promise<HttpsResponse> {
  try {
    return await sendHttpsRequest({ ...request, timeoutMs: TIMEOUT_MS }, ANSWER_BYTES_MAX)
  } catch (error) {
    if (!(error instanceof HttpsFault)) throw error
    if (error.cause instanceof EnrollmentFault) throw error.cause
    const isOpen = remedy !== null && (error.isSent || remedy.isRepeated)
    const unknown = isOpen ? `; outcome unknown: ${remedy.text}` : ''
    throw new EnrollmentFault(`${origin}: it ${error.message}${unknown}`, { cause: error })
  }
}

function authoritiesIn(origin: string, base64: string): Certificate[] {
  try {
    const found = readCertsOnly(Buffer.from(base64, 'base64')).filter((one) => one.isAuthority)
    if (found.length > 0 && found.length <= BUNDLE_CERTIFICATES_MAX) return found
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
  }
  throw new EnrollmentFault(
    `${origin}: no valid CA certificates in its response; ask an administrator whether it is a controller`,
  )
}
