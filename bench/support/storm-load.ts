import { readFileSync } from 'node:fs'
import tls from 'node:tls'

import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { pause } from '../../test/process/support/client.ts'
import { LeanClient } from './lean-client.ts'
import { asked, CLIENT, type Item, made, type Target, TOKEN_HEADER } from './target.ts'

/** The services and the enrolled devices of a network for a connection storm. */
export interface StormNetwork {
  readonly services: readonly string[]
  /** For each device, a TLS context with its certificate. */
  readonly devices: readonly tls.SecureContext[]
}

export async function stormNetwork(
  target: Target,
  counts: { readonly services: number; readonly devices: number },
): Promise<StormNetwork> {
  const services = await offerServices(target, counts.services)
  return { services, devices: await enrolledDevices(target, counts.devices) }
}

const PEM = 'application/x-pem-file'

/** Creates services that all devices may dial at a router. @returns their IDs. */
async function offerServices(target: Target, count: number): Promise<string[]> {
  const all = { semantic: 'AnyOf', identityRoles: ['#all'] }
  const everywhere = { name: 'storm', semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  await made(target, 'service-edge-router-policies', { ...everywhere, serviceRoles: ['#all'] })
  await made(target, 'edge-router-policies', { ...everywhere, identityRoles: ['#all'] })
  const policy = { ...all, name: 'storm', type: 'Dial', serviceRoles: ['#all'] }
  await made(target, 'service-policies', policy)
  const ids: string[] = []
  for (let at = 0; at < count; at += 1) {
    ids.push(await made(target, 'services', { name: `service ${at}`, encryptionRequired: true }))
  }
  return ids
}

async function enrolledDevices(target: Target, count: number): Promise<tls.SecureContext[]> {
  const contexts: tls.SecureContext[] = []
  const [url = ''] = target.controllers
  const client = await LeanClient.connect(url, target.ca, TOKEN_HEADER)
  for (let at = 0; at < count; at += 1) {
    const device = {
      name: `device ${at}`,
      type: 'Device',
      isAdmin: false,
      enrollment: { ott: true },
    }
    const id = await made(target, 'identities', device)
    const { enrollment } = await asked<Item>(target, 'GET', `identities/${id}`)
    const { token } = (enrollment as { readonly ott: { readonly token: string } }).ott
    const key = generatePrivateKeyPem()
    const csr = await createCertificateRequest({ privateKeyPem: key, id: 'device' })
    const path = `${CLIENT}/enroll?method=ott&token=${token}`
    const { status, body } = await client.request('POST', path, null, csr, '', PEM)
    if (status !== 200) throw new Error(`${target.title}: ${body}`)
    const cert = certificateIn(body)
    contexts.push(tls.createSecureContext({ ca: readFileSync(target.ca), cert, key }))
  }
  client.close()
  return contexts
}

/** Extracts the certificate from a response, which is PEM or JSON. */
function certificateIn(body: string): string {
  if (!body.startsWith('{')) return body
  const { data } = JSON.parse(body) as { readonly data: { readonly cert: string } }
  return data.cert
}

/**
 * Connects as a client that returns after an outage: opens a new connection without a session
 * ticket, logs in by certificate, lists the services and opens a service session. Sends a request
 * again if it was refused because of the load.
 * @param serial determines the device, the controller and the service.
 * @returns number of refusals because of the load.
 */
export async function connectOnce(
  target: Target,
  { devices, services }: StormNetwork,
  serial: number,
): Promise<number> {
  const { controllers, title } = target
  const secureContext = devices[serial % devices.length]
  const url = controllers[serial % controllers.length]
  const serviceId = services[serial % services.length]
  if (secureContext === undefined || url === undefined) throw new Error('the network is empty')
  const client = await LeanClient.connectBy(url, { secureContext }, TOKEN_HEADER)
  let refusals = 0
  const send = async (...request: Parameters<LeanClient['request']>): Promise<string> => {
    for (;;) {
      const { status, body, retryAfterSeconds } = await client.request(...request)
      if (status < 300) return body
      if (![429, 503].includes(status)) throw new Error(`${title}: ${status}: ${body}`)
      refusals += 1
      await pause(retryAfterSeconds === null ? RETRY_MS : retryAfterSeconds * 1000)
    }
  }
  try {
    const logIn = await send('POST', `${CLIENT}/authenticate?method=cert`, null, '{}')
    const { token } = (JSON.parse(logIn) as { data: { token: string } }).data
    await send('GET', `${CLIENT}/services?limit=500`, token)
    await send('POST', `${CLIENT}/sessions`, token, JSON.stringify({ serviceId, type: 'Dial' }))
    return refusals
  } finally {
    client.close()
  }
}

/** Time that a client waits if the refusal contains no time to retry. */
const RETRY_MS = 250
