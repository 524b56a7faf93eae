import { createRouterRequest } from '../../pki/authority/router-request.ts'
import type { RouterConfig } from '../../config/router/table.ts'

/** Certificate requests (CSR) for both certificates of a router, as PEM. */
export interface CertificateRequests {
  readonly certCsr: string
  readonly serverCertCsr: string
}

/**
 * Creates both requests. The one for the client certificate contains the router ID as common name
 * and no host; the one for the server certificate contains the names in `csr.sans`.
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
