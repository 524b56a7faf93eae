import { createRouterRequest } from '../../pki/authority/router-request.ts'
import type { RouterConfig } from '../../config/router/table.ts'

/** Certificate requests for both certificates of a router, for a controller; PEM each. */
export interface CertificateRequests {
  readonly certCsr: string
  readonly serverCertCsr: string
}

/**
 * The client certificate contains the router ID as common name and no host; the server certificate
 * contains the names of `csr.sans`.
 */
export async function createCertificateRequests(options: {
  readonly routerId: string
  readonly csr: NonNullable<RouterConfig['csr']>
  readonly privateKeyPem: string
  readonly serverKeyPem: string
}): Promise<CertificateRequests> {
  const { routerId, csr, privateKeyPem, serverKeyPem } = options
  const subject = { ...csr, commonName: routerId }
  const none = { dns: [], ip: [], uri: [], email: [] }
  return {
    certCsr: await createRouterRequest({ privateKeyPem, subject, names: none }),
    serverCertCsr: await createRouterRequest({
      privateKeyPem: serverKeyPem,
      subject,
      names: csr.sans,
    }),
  }
}
