import { expect } from 'vitest'

import { RouterClientAuthorizer } from '../../../src/api/fabric/router-client-authorizer.ts'
import { createServices } from '../../../src/api/services.ts'
import { newShortId } from '../../../src/lib/random.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../../src/pki/authority/certificate-request.ts'
import type { PostureReport } from '../../../src/ports/posture.ts'
import type {
  ClientAccessRequest,
  ClientAccessDecision,
  ReportedClient,
} from '../../../src/ports/router-clients.ts'
import { CallerOf, client, management, type Reply } from './caller.ts'
import type { TestController } from './controller.ts'
import { made } from './network.ts'
import { OidcClient } from './oidc.ts'

export interface Device {
  readonly id: string
  readonly serviceId: string
  readonly checkId: string
  readonly routerId: string
  /** The client as a router reports it to controllers, with its access token. */
  readonly shown: ReportedClient
  call(method: string, path: string, body?: object): Promise<Reply>
}

export const atWork = { typeId: 'DOMAIN', domains: ['corp.test'] }
export const domain = (name: string): PostureReport => ({
  kind: 'domain',
  checkId: '',
  domain: name,
})

/**
 * OIDC clients with a certificate each, and access requests and posture reports about them as
 * routers send them.
 */
export class OidcDevices {
  readonly clients: RouterClientAuthorizer
  readonly #controller: TestController
  readonly #root: CallerOf

  constructor(controller: TestController, root: CallerOf) {
    const { parts, machine } = controller
    this.clients = new RouterClientAuthorizer({ ...parts, ...createServices(parts) }, machine)
    this.#controller = controller
    this.#root = root
  }

  create(collection: string, body: object): Promise<string> {
    return made(this.#root, `${management}/${collection}`, { name: newShortId(), ...body })
  }

  /** An identity whose only service requires the posture check. */
  async behind(check: object): Promise<Device> {
    const mark = newShortId()
    const all = { semantic: 'AnyOf', identityRoles: [`#${mark}`], serviceRoles: [`#${mark}`] }
    const person = { type: 'User', isAdmin: false, roleAttributes: [mark] }
    const id = await this.create('identities', person)
    const password = 'a long enough password'
    const credential = { method: 'updb', identityId: id, username: mark, password }
    await made(this.#root, `${management}/authenticators`, credential)
    const service = { encryptionRequired: true, roleAttributes: [mark] }
    const serviceId = await this.create('services', service)
    const checkId = await this.create('posture-checks', { ...check, roleAttributes: [mark] })
    await this.create('service-policies', { ...all, type: 'Dial', postureCheckRoles: [`#${mark}`] })
    const routerId = await this.create('edge-routers', {})
    const edgeRouterRoles = [`@${routerId}`]
    const { semantic, identityRoles, serviceRoles } = all
    await this.create('edge-router-policies', { semantic, identityRoles, edgeRouterRoles })
    await this.create('service-edge-router-policies', { semantic, serviceRoles, edgeRouterRoles })
    const { access_token: token } = await new OidcClient(this.#controller).logIn(mark, password)
    const authorization = `Bearer ${token}`
    const call = (method: string, path: string, body?: object): Promise<Reply> =>
      new CallerOf(this.#controller).call(method, client + path, body, { authorization })
    const fingerprint = await certificateBy(call)
    const shown = { routerId, apiSessionToken: token, fingerprints: [fingerprint] }
    return { id, serviceId, checkId, routerId, shown, call }
  }

  /**
   * Opens a service session, as a client does before it connects to the router at which it dials.
   */
  async openSession({ call, serviceId }: Device): Promise<string> {
    const reply = await call('POST', '/sessions', { serviceId, type: 'Dial' })
    expect(reply.status, reply.text).toBe(201)
    return (reply.body.data as { token: string }).token
  }

  dial(
    { shown }: Device,
    sessionToken: string,
    more: Partial<ClientAccessRequest> = {},
  ): Promise<ClientAccessDecision> {
    return this.clients.judge({ ...shown, sessionToken, type: 'Dial', ...more })
  }
}

/** Issues a certificate for the caller's session. @returns its fingerprint. */
export async function certificateBy(call: Device['call']): Promise<string> {
  const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
  const path = '/current-api-session/certificates'
  const certificate = await call('POST', path, { csr })
  expect(certificate.status, certificate.text).toBe(201)
  const { id } = certificate.body.data as { id: string }
  const kept = await call('GET', `${path}/${id}`)
  return (kept.body.data as { fingerprint: string }).fingerprint
}
