import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../../src/pki/authority/certificate-request.ts'
import { newCa } from '../../support/authorities.ts'
import type { Answer, Client } from './client.ts'
import type { TestCluster } from './cluster.ts'

const MANAGEMENT = '/edge/management/v1'
const CLIENT = '/edge/client/v1'
const DAY_MS = 24 * 60 * 60_000
const PLAIN = { 'content-type': 'text/plain' }

export type Detail = Readonly<Record<string, unknown>>

/**
 * A key with its certificate request. A device creates both once and keeps them for every retry.
 */
export interface Requested {
  readonly privateKeyPem: string
  readonly csr: string
}

export interface RouterKeys {
  readonly client: Requested
  readonly server: Requested
}

export interface Outstanding {
  readonly identityId: string
  readonly enrollmentId: string
  readonly token: string
}

export async function newRequest(commonName = 'a device'): Promise<Requested> {
  const privateKeyPem = generatePrivateKeyPem()
  return { privateKeyPem, csr: await createCertificateRequest({ privateKeyPem, id: commonName }) }
}

export async function newRouterKeys(id: string): Promise<RouterKeys> {
  return { client: await newRequest(id), server: await newRequest('gate.test') }
}

/** A client certificate with its key, signed by this issuer. */
export function certifiedBy(
  issuer: CertificateWithKey,
  commonName: string,
): Promise<CertificateWithKey> {
  const validity = validityStartingAt(Date.now(), DAY_MS)
  return issueLeaf({ issuer, commonName, uris: [], hosts: [], usages: ['client'], validity })
}

export function certifiedKey(
  { privateKeyPem }: Requested,
  certificatePem: unknown,
): CertificateWithKey {
  return { privateKeyPem, certificatePem: String(certificatePem) }
}

export function fingerprintOf({ certificatePem }: CertificateWithKey): string {
  return parseCertificates(certificatePem)[0].sha1
}

/** @throws unless the answer has this status. */
export function dataOf(answer: Answer, status = 200): Detail {
  if (answer.status !== status) throw new Error(`answered ${answer.status}: ${answer.text}`)
  return answer.body.data as Detail
}

export function codeOf({ body }: Answer): string | undefined {
  return body.error?.code
}

/** Several cases create records in one cluster, so their names need different numbers. */
let serial = 0

/**
 * Administrators, devices and routers of a cluster. Each method names the controller that receives
 * the request. Reads of an administrator reflect all earlier answers. Requests of devices need not,
 * as those of real devices; only `session` and `identity` do.
 */
export class Enrolling {
  readonly #admins: readonly Client[]
  readonly #devices: readonly Client[]
  #index = ''

  private constructor(admins: readonly Client[], devices: readonly Client[]) {
    this.#admins = admins
    this.#devices = devices
  }

  static async on(cluster: TestCluster): Promise<Enrolling> {
    const all = Array.from({ length: cluster.nodes }, (_, at) => at + 1)
    const admins = await Promise.all(all.map((k) => cluster.loggedIn(k)))
    return new Enrolling(
      admins,
      all.map((k) => cluster.client(k)),
    )
  }

  newName(kind: string): string {
    serial += 1
    return `${kind} ${serial}`
  }

  async ask(
    k: number,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const answer = await clientOf(this.#admins, k).request(method, MANAGEMENT + path, {
      ...(body === undefined ? {} : { body }),
      headers: { ...headers, ...this.asOfAnswers() },
    })
    this.#reflect(answer)
    return answer
  }

  /**
   * Headers that request a state that reflects every answer so far: another controller may be some
   * milliseconds behind.
   */
  asOfAnswers(): Record<string, string> {
    return this.#index === '' ? {} : { 'net-min-index': this.#index }
  }

  #reflect({ headers }: Answer): void {
    const told = headers['net-index']
    const numberIn = (index: string): number => Number(index.split(':')[1] ?? 0)
    if (typeof told === 'string' && numberIn(told) > numberIn(this.#index)) this.#index = told
  }

  async make(k: number, path: string, body: unknown): Promise<string> {
    return String(dataOf(await this.ask(k, 'POST', path, body), 201)['id'])
  }

  async shown(k: number, path: string): Promise<Detail> {
    return dataOf(await this.ask(k, 'GET', path))
  }

  /**
   * Reads a record so that it reflects every write that took effect before, acknowledged or not.
   */
  async latest(k: number, path: string): Promise<Detail> {
    const [place = '', query = ''] = path.split('?')
    return this.shown(k, `${place}?consistency=linearizable&${query}`)
  }

  /** Creates a new identity that may enroll with this method. */
  async outstanding(k: number, enrollment: Detail): Promise<Outstanding> {
    const body = { name: this.newName('device'), type: 'Device', isAdmin: false, enrollment }
    const identityId = await this.make(k, '/identities', body)
    return this.#enrollmentOf(k, identityId)
  }

  async #enrollmentOf(k: number, identityId: string): Promise<Outstanding> {
    const { enrollment } = await this.shown(k, `/identities/${identityId}`)
    const [made] = Object.values(enrollment as Record<string, Detail>)
    if (made === undefined) throw new Error('the identity has no enrollment')
    return { identityId, enrollmentId: String(made['id']), token: String(made['token']) }
  }

  async refreshed(k: number, enrollmentId: string): Promise<string> {
    const expiresAt = soon()
    dataOf(await this.ask(k, 'POST', `/enrollments/${enrollmentId}/refresh`, { expiresAt }))
    return String((await this.shown(k, `/enrollments/${enrollmentId}`))['token'])
  }

  /** @returns the enrollment that replaces the authenticator. */
  async reEnrolled(k: number, authenticatorId: string): Promise<Detail & Outstanding> {
    const id = await this.make(k, `/authenticators/${authenticatorId}/re-enroll`, {
      expiresAt: soon(),
    })
    const enrollment = await this.shown(k, `/enrollments/${id}`)
    const { identityId, token } = enrollment as unknown as Outstanding
    return { ...enrollment, enrollmentId: id, identityId, token }
  }

  async router(k: number): Promise<{ readonly id: string; readonly token: string }> {
    const id = await this.make(k, '/edge-routers', { name: this.newName('gate') })
    return { id, token: await this.routerToken(k, id) }
  }

  async routerToken(k: number, id: string): Promise<string> {
    return String((await this.shown(k, `/edge-routers/${id}`))['enrollmentToken'])
  }

  async newCa(k: number, rest: Detail = {}): Promise<{ id: string; key: CertificateWithKey }> {
    const name = this.newName('authority')
    const key = await newCa(name, Date.now())
    const id = await this.make(k, '/cas', {
      name,
      certPem: key.certificatePem,
      identityRoles: ['sensors'],
      isAuthEnabled: true,
      isAutoCaEnrollmentEnabled: true,
      isOttCaEnrollmentEnabled: true,
      ...rest,
    })
    return { id, key }
  }

  async verifyCa(k: number, { id, key }: { id: string; key: CertificateWithKey }): Promise<void> {
    const { verificationToken } = await this.shown(k, `/cas/${id}`)
    const proof = await certifiedBy(key, String(verificationToken))
    const [leaf] = parseCertificates(proof.certificatePem)
    dataOf(await this.ask(k, 'POST', `/cas/${id}/verify`, leaf.pem, PLAIN))
  }

  /** Sends a request of a device or a router, which has no administrator session. */
  async device(
    k: number,
    method: string,
    path: string,
    options: {
      readonly by?: CertificateWithKey
      readonly body?: unknown
      readonly token?: string
      readonly headers?: Record<string, string>
    } = {},
  ): Promise<Answer> {
    const { token, headers = {}, ...rest } = options
    const session: Record<string, string> = token === undefined ? {} : { 'net-session': token }
    const answer = await clientOf(this.#devices, k).request(method, CLIENT + path, {
      ...rest,
      headers: { ...session, ...headers },
    })
    this.#reflect(answer)
    return answer
  }

  ott(k: number, token: string, { csr }: Requested, headers = {}): Promise<Answer> {
    const path = `/enroll?method=ott&token=${token}`
    return this.device(k, 'POST', path, { body: csr, headers: { ...PLAIN, ...headers } })
  }

  ottca(k: number, token: string, by: CertificateWithKey): Promise<Answer> {
    return this.device(k, 'POST', `/enroll?method=ottca&token=${token}`, { by, headers: PLAIN })
  }

  updb(k: number, token: string, password: string): Promise<Answer> {
    return this.device(k, 'POST', `/enroll?method=updb&token=${token}`, { body: { password } })
  }

  byCa(k: number, by: CertificateWithKey): Promise<Answer> {
    return this.device(k, 'POST', '/enroll?method=ca', { by, body: {} })
  }

  erott(k: number, token: string, keys: RouterKeys, headers = {}): Promise<Answer> {
    const path = `/enroll?method=erott&token=${token}`
    return this.device(k, 'POST', path, { body: requestsOf(keys), headers })
  }

  extendRouter(k: number, by: CertificateWithKey, keys: RouterKeys): Promise<Answer> {
    return this.device(k, 'POST', '/enroll/extend/router', { by, body: requestsOf(keys) })
  }

  extend(
    k: number,
    { by, token, authenticatorId }: Extending,
    { csr }: Requested,
    headers = {},
  ): Promise<Answer> {
    const path = `/current-identity/authenticators/${authenticatorId}/extend`
    return this.device(k, 'POST', path, { by, token, body: { clientCertCsr: csr }, headers })
  }

  verifyExtension(
    k: number,
    { by, token, authenticatorId }: Extending,
    clientCert: string,
  ): Promise<Answer> {
    const path = `/current-identity/authenticators/${authenticatorId}/extend-verify`
    return this.device(k, 'POST', path, { by, token, body: { clientCert } })
  }

  logIn(k: number, by: CertificateWithKey): Promise<Answer> {
    return this.device(k, 'POST', '/authenticate?method=cert', { by, body: {} })
  }

  logInByPassword(k: number, username: string, password: string): Promise<Answer> {
    const body = { username, password }
    return this.device(k, 'POST', '/authenticate?method=password', { body })
  }

  /** Requests the session, reflecting every answer so far. */
  session(k: number, token: string, by: CertificateWithKey | null = null): Promise<Answer> {
    const headers = this.asOfAnswers()
    const shown = by === null ? {} : { by }
    return this.device(k, 'GET', '/current-api-session', { token, headers, ...shown })
  }

  /**
   * Requests the identity, reflecting every answer so far: another controller may be some
   * milliseconds behind.
   */
  identity(k: number, token: string): Promise<Answer> {
    const headers = this.asOfAnswers()
    return this.device(k, 'GET', '/current-identity', { token, headers })
  }
}

/**
 * Inputs of a certificate extension: the current certificate, a session, and the authenticator with
 * the certificate.
 */
export interface Extending {
  readonly by: CertificateWithKey
  readonly token: string
  readonly authenticatorId: string
}

function requestsOf({ client, server }: RouterKeys): Detail {
  return { certCsr: client.csr, serverCertCsr: server.csr }
}

function soon(): string {
  return new Date(Date.now() + 60 * 60_000).toISOString()
}

function clientOf(clients: readonly Client[], k: number): Client {
  const client = clients[k - 1]
  if (client === undefined) throw new Error(`there is no controller ${k}`)
  return client
}
