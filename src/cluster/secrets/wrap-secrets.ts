import { create } from '@bufbuild/protobuf'
import {
  type SeedRecord,
  SeedRecordSchema,
  type WrappedSecret,
  WrappedSecretSchema,
} from '../../../proto/gen/command_pb.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import type { SecretVersion, SharedSecretName } from '../../lib/shared-secrets.ts'
import type { CertificateWithKey } from '../../pki/authority/authority.ts'
import { newClusterKey } from '../../pki/secrets/cluster-key.ts'
import { wrapSecret } from '../../pki/secrets/wrapped-secret.ts'
import type { NodeId } from '../../raft/types.ts'

export interface SecretRecipient {
  readonly nodeId: NodeId
  /** Public key of the recipient, SubjectPublicKeyInfo in DER. */
  readonly publicKeySpki: Uint8Array
}

interface VersionToWrap {
  readonly name: SharedSecretName
  readonly version: number
  readonly secret: Uint8Array
}

/**
 * Returns one wrapped secret for each version and recipient.
 * @throws {CertificateError} when a recipient's key is not allowed.
 */
export async function wrapSecretsForAll(
  clusterId: string,
  versions: readonly VersionToWrap[],
  recipients: readonly SecretRecipient[],
): Promise<WrappedSecret[]> {
  const pairs = versions.flatMap((version) =>
    recipients.map((recipient) => ({ ...version, ...recipient })),
  )
  return await Promise.all(
    pairs.map(async ({ name, version, secret, nodeId, publicKeySpki }) => {
      const context = { clusterId, name, version, nodeId }
      const jwe = await wrapSecret(secret, publicKeySpki, context)
      return create(WrappedSecretSchema, { name, version, nodeId, jwe })
    }),
  )
}

/** The private key of an authority as bytes (PEM), which controllers share. */
export function authorityKeyBytes({ privateKeyPem }: CertificateWithKey): Uint8Array {
  return Uint8Array.from(Buffer.from(privateKeyPem))
}

export interface BootstrapMember extends SecretRecipient {
  /** 16 bytes. */
  readonly storeId: Uint8Array
  /** host:port of its mesh. */
  readonly address: string
  readonly certificatePem: string
}

/**
 * Admissions and shared secrets of a new cluster, for the bootstrap command. The cluster key,
 * unless it is given, and the factor key that encrypts second factors are generated here and stored
 * nowhere else.
 */
export async function createBootstrapRecords(input: {
  readonly clusterId: string
  readonly admissions: readonly BootstrapMember[]
  readonly issuing: CertificateWithKey
  readonly clusterKey?: Uint8Array
  readonly nowMs: number
}): Promise<SeedRecord[]> {
  const { clusterId, admissions, issuing, nowMs } = input
  const versions = [
    { name: 'clusterKey', version: 1, secret: input.clusterKey ?? newClusterKey() },
    { name: 'factorKey', version: 1, secret: newClusterKey() },
    { name: 'issuingAuthority', version: 1, secret: authorityKeyBytes(issuing) },
  ] as const
  const wrapped = await wrapSecretsForAll(clusterId, versions, admissions)
  const secretRecords = versions.map(({ name, version }) => {
    const own = wrapped.filter((one) => one.name === name)
    const first: SecretVersion = {
      version,
      certificatePem: name === 'issuingAuthority' ? issuing.certificatePem : '',
      createdAt: nowMs,
      overlapEndsAt: null,
      exposure: 'none',
      wrapped: Object.fromEntries(own.map(({ nodeId, jwe }) => [nodeId, jwe])),
    }
    return seed('sharedSecret', name, { versions: [first] })
  })
  return [...admissions.map(admissionRecord), ...secretRecords]
}

function admissionRecord(admission: BootstrapMember): SeedRecord {
  const { nodeId, publicKeySpki, storeId, address, certificatePem } = admission
  return seed('admission', nodeId, {
    publicKeySpki: Buffer.from(publicKeySpki).toString('base64'),
    storeId: Buffer.from(storeId).toString('hex'),
    address,
    certificatePem,
    isVoter: true,
  })
}

function seed(entity: string, id: string, fields: Readonly<Record<string, unknown>>): SeedRecord {
  const json = new TextEncoder().encode(canonicalJson(fields))
  return create(SeedRecordSchema, { entity, id, json })
}
