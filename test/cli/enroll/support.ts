import { spawn } from 'node:child_process'
import { expect } from 'vitest'

import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import { admin, startController, type TestController } from '../../api/support/controller.ts'
import { TlsListener, clientKey, serverKey } from '../../api/support/tls.ts'
import { management } from '../../api/support/caller.ts'
import { flotilla } from '../support.ts'
import { newCa } from '../../support/authorities.ts'
import { signerOf } from '../../support/member-leaf.ts'

type Detail = Readonly<Record<string, unknown>>

/**
 * A controller whose tokens are signed with the key of the certificate that it presents, as those
 * of a real controller are.
 */
export class EnrollingController {
  readonly controller: TestController
  readonly own: CertificateWithKey
  readonly listener: TlsListener
  token = ''
  #serial = 0

  private constructor(controller: TestController, own: CertificateWithKey, listener: TlsListener) {
    this.controller = controller
    this.own = own
    this.listener = listener
  }

  /**
   * @param featureLevel feature level of the cluster; undefined: the newest.
   * @param providerCaPem CA of identity providers on this host.
   */
  static async open(featureLevel?: number, providerCaPem?: string): Promise<EnrollingController> {
    const rules = { allowsReserved: true, allowsHttp: false, refusedNetworks: [] }
    const controller = await startController(
      {},
      providerCaPem === undefined ? undefined : { ...rules, caPem: providerCaPem },
      { allowsReservedSignerHosts: providerCaPem !== undefined },
      featureLevel,
    )
    // Sets the clock to the real time, because the client checks certificates with the real time.
    controller.clock.advance(Date.now() - controller.clock.nowMs())
    const own = await serverKey(controller)
    const bindings: Record<string, string[]> = {
      'edge-client': [],
      'edge-management': [],
      'edge-oidc': [],
    }
    const [{ pem, publicKeySha256 }] = parseCertificates(own.certificatePem)
    const member = { certificatePem: pem, publicKeySha256 }
    const jwt = signerOf(own, [member], () => controller.clock.nowMs())
    const listener = await TlsListener.open(controller, own, { jwt, bindings })
    bindings['edge-client']?.push(`https://127.0.0.1:${listener.port}`)
    const made = new EnrollingController(controller, own, listener)
    const session = await made.ask('POST', '/authenticate?method=password', admin)
    made.token = String(session['token'])
    return made
  }

  get origin(): string {
    return `https://127.0.0.1:${this.listener.port}`
  }

  /** Response of the management API to an administrator. */
  async ask(method: string, path: string, body?: unknown, type?: string): Promise<Detail> {
    const reply = await this.listener.call({
      method,
      path: `${management}${path}`,
      token: this.token,
      body,
      ...(type === undefined ? {} : { headers: { 'content-type': type } }),
    })
    expect([200, 201], `${method} ${path}: ${reply.text}`).toContain(reply.status)
    return (reply.body.data ?? { text: reply.text }) as Detail
  }

  async newToken(enrollment: Detail): Promise<{ readonly id: string; readonly jwt: string }> {
    this.#serial += 1
    const name = `device ${this.#serial}`
    const body = { name, type: 'Device', isAdmin: false, enrollment }
    const id = String((await this.ask('POST', '/identities', body))['id'])
    const identity = await this.ask('GET', `/identities/${id}`)
    const [made] = Object.values(identity['enrollment'] as Record<string, Detail>)
    return { id, jwt: String(made?.['jwt']) }
  }

  /** Registers a third-party CA without verifying it. */
  async newCa(name: string): Promise<{ readonly id: string; readonly key: CertificateWithKey }> {
    const key = await newCa(name, this.controller.clock.nowMs())
    const body = {
      name,
      certPem: key.certificatePem,
      identityRoles: [],
      isAuthEnabled: true,
      isAutoCaEnrollmentEnabled: true,
      isOttCaEnrollmentEnabled: true,
    }
    return { id: String((await this.ask('POST', '/cas', body))['id']), key }
  }

  async verifiedCa(
    name: string,
  ): Promise<{ readonly id: string; readonly key: CertificateWithKey }> {
    const ca = await this.newCa(name)
    const { verificationToken } = await this.ask('GET', `/cas/${ca.id}`)
    const proof = await clientKey(ca.key, String(verificationToken), Date.now())
    const [leaf] = parseCertificates(proof.certificatePem)
    await this.ask('POST', `/cas/${ca.id}/verify`, leaf.pem, 'text/plain')
    return ca
  }

  /**
   * Runs a command as a process, and kills it as soon as the controller has applied its first write,
   * before the controller responds.
   */
  async killedBeforeResponse(words: readonly string[]): Promise<void> {
    const { cluster } = this.controller
    const apply = cluster.propose.bind(cluster)
    const applied = new Promise<void>((resolve) => {
      cluster.propose = async (input) => {
        await apply(input)
        resolve()
        return await new Promise<never>(() => undefined)
      }
    })
    const child = spawn(flotilla, words, { stdio: 'ignore' })
    const ended = new Promise((resolve) => child.once('close', resolve))
    try {
      await Promise.race([
        applied,
        ended.then(() => Promise.reject(new Error('the command ended before its write'))),
      ])
    } finally {
      cluster.propose = apply
      child.kill('SIGKILL')
      await ended
    }
  }

  async close(): Promise<void> {
    await this.listener.close()
    await this.controller.close()
  }
}
