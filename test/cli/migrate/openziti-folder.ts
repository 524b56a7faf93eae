import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  ISSUING_LIFETIME_MS,
  issueLeaf,
  LEAF_LIFETIME_MS,
  ROOT_LIFETIME_MS,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { writeBolt } from '../../support/bolt-writer.ts'
import { clientCertificate, newCa } from '../../support/authorities.ts'
import {
  type ClusterFacts,
  databaseOf,
  sampleStores,
  type SampleStores,
} from '../../migrate/sample-network.ts'

/** An OpenZiti controller in a folder: configuration, certificates and database. */
export interface OpenZitiController {
  readonly configuration: string
  readonly database: string
}

export interface OpenZitiNetwork {
  readonly root: CertificateWithKey
  readonly stores: SampleStores
}

/** @param nowMs start of the validity of the certificates. */
export async function openZitiNetwork(nowMs: number): Promise<OpenZitiNetwork> {
  const root = await createRootAuthority({
    commonName: 'Acme Root',
    validity: validityStartingAt(nowMs, ROOT_LIFETIME_MS),
  })
  const partner = await newCa('partner', nowMs)
  const stores = sampleStores({
    leafPem: await clientCertificate(root, 'edge-1', nowMs),
    caPem: partner.certificatePem,
    partnerPem: await clientCertificate(partner, 'partner 1', nowMs),
  })
  return { root, stores }
}

interface ControllerOptions {
  readonly folder: string
  readonly id: string
  readonly port: number
  readonly network: OpenZitiNetwork
  readonly nowMs: number
  /** Certificates of clusters have SPIFFE IDs; those of single controllers have none. */
  readonly cluster?: ClusterFacts & { readonly trustDomain: string }
  readonly stores?: SampleStores
}

export async function writeController(options: ControllerOptions): Promise<OpenZitiController> {
  const { folder, id, port, network, nowMs, cluster } = options
  const own = join(folder, id)
  mkdirSync(own, { recursive: true })
  const write = (name: string, text: string | Uint8Array): string => {
    writeFileSync(join(own, name), text)
    return join(own, name)
  }
  const issuer = await createIssuingAuthority({
    commonName: `signer of ${id}`,
    root: network.root,
    validity: validityStartingAt(nowMs, ISSUING_LIFETIME_MS),
  })
  const leaf = await issueLeaf({
    issuer,
    commonName: id,
    uris: cluster === undefined ? [] : [`spiffe://${cluster.trustDomain}/controller/${id}`],
    hosts: ['localhost', '127.0.0.1'],
    validity: validityStartingAt(nowMs, LEAF_LIFETIME_MS),
    usages: ['server', 'client'],
  })
  write('server.pem', leaf.certificatePem)
  write('server.key', leaf.privateKeyPem)
  write('root.pem', network.root.certificatePem)
  write('signer.pem', issuer.certificatePem)
  write('signer.key', issuer.privateKeyPem)
  const database = write(
    cluster === undefined ? 'ctrl.db' : 'ctrl-ha.db',
    writeBolt(databaseOf(options.stores ?? network.stores, 48, cluster)),
  )
  const configuration = write(
    'ctrl.yml',
    `v: 3
${cluster === undefined ? 'db: ctrl.db' : 'cluster: { dataDir: . }'}
identity: { cert: server.pem, key: server.key, ca: root.pem }
ctrl: { listener: 'tls:127.0.0.1:${port}', options: { advertiseAddress: 'tls:localhost:${port}' } }
healthChecks: { boltCheck: { interval: 30s } }
edge:
  api: { sessionTimeout: 45m, address: 'localhost:${port}' }
  enrollment:
    signingCert: { cert: signer.pem, key: signer.key }
    edgeRouter: { duration: 24h }
web:
  - name: all
    bindPoints: [{ interface: '127.0.0.1:${port}', address: 'localhost:${port}' }]
    apis: [{ binding: edge-management }, { binding: edge-client }, { binding: edge-oidc }, { binding: zac }]
`,
  )
  return { configuration, database }
}
