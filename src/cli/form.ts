import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, CommandSchema, FormSchema } from '../../proto/gen/command_pb.ts'
import type { SeedRecord } from '../../proto/gen/command_pb.ts'
import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import type { Member } from '../../proto/gen/membership_pb.ts'
import { hashPassword } from '../api/auth/password.ts'
import { formingSecrets } from '../cluster/wrap-secrets.ts'
import type { FormingAdmission } from '../cluster/wrap-secrets.ts'
import type { ControllerConfig } from '../config/options.ts'
import { featureLevel } from '../fsm/apply.ts'
import { formingRecords } from '../fsm/seed.ts'
import { newOpaqueId, newShortId } from '../lib/random.ts'
import { formatUuid, newUuidv7 } from '../lib/uuid.ts'
import {
  createIssuingAuthority,
  createRootAuthority,
  ISSUING_LIFETIME_MS,
  issueControllerCertificate,
  LEAF_LIFETIME_MS,
  ROOT_LIFETIME_MS,
  validityFrom,
} from '../pki/authority.ts'
import type { CertifiedKey } from '../pki/authority.ts'
import { parseCertificates } from '../pki/certificate.ts'
import { writePublicFile, writeSecretFile } from '../pki/key-file.ts'
import type { Entry } from '../raft/types.ts'
import { formDataFolder } from '../store/form-data-folder.ts'
import { advertisedHosts } from './config-from-flags.ts'
import type { PlannedConfig } from './config-from-flags.ts'

/** Beside a configuration while its controller is being formed: what stands there without data is ours to make anew. */
export const FORMING_MARK = '.forming'

export interface FormInput {
  /** The first members; `cluster init` has one. All share a trust domain. */
  readonly controllers: readonly [PlannedConfig, ...PlannedConfig[]]
  readonly adminName: string
  readonly password: string
  readonly nowMs: number
  /** Called after everything but the data folders is there, which make a controller of it. */
  readonly beforeData?: () => void
}

export interface FormedCluster {
  readonly clusterId: string
  /** 0600; only needed to renew the issuing authority. */
  readonly rootKeyPath: string
  readonly caPem: string
}

interface Authorities {
  readonly root: CertifiedKey
  readonly issuing: CertifiedKey
}

interface FormedMember {
  readonly planned: PlannedConfig
  readonly leaf: CertifiedKey
  readonly member: Member
}

/** Where the root key of a cluster formed with this configuration lies. */
export function rootKeyPathOf(folder: string): string {
  return join(folder, 'pki', 'root.key')
}

/**
 * Makes all that a new cluster begins with: authorities, keys, certificates, the default admin, and a data folder for
 * each of its first controllers. The data folders come last and whole, and nothing can run without one: after a crash
 * at any point the same call begins anew. The caller has made sure that nothing of value is overwritten.
 */
export async function formCluster(input: FormInput): Promise<FormedCluster> {
  const { controllers, nowMs } = input
  const [first] = controllers
  const { trustDomain } = first.config
  const clusterId = formatUuid(newUuidv7(nowMs))
  for (const { folder } of controllers) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writePublicFile(join(folder, FORMING_MARK), '')
  }
  const authorities = await makeAuthorities(trustDomain, nowMs)
  const rootKeyPath = rootKeyPathOf(first.folder)
  mkdirSync(dirname(rootKeyPath), { recursive: true, mode: 0o700 })
  writeSecretFile(rootKeyPath, authorities.root.privateKeyPem)
  const members: FormedMember[] = []
  for (const planned of controllers) members.push(await makeMember(planned, authorities, input))
  const secrets = await formingSecrets({
    clusterId,
    admissions: members.map(admissionOf),
    issuing: authorities.issuing,
    nowMs,
  })
  const admin = await adminRecords(input)
  const entries = firstEntries(
    members.map(({ member }) => member),
    formingCommand(clusterId, [...admin, ...secrets]),
    nowMs,
  )
  for (const { planned, leaf } of members) {
    writeCredentials(planned.config, leaf, authorities.root.certificatePem)
    if (!planned.isThere) writePublicFile(planned.path, planned.text)
  }
  input.beforeData?.()
  for (const { planned, member } of members) {
    const { id: nodeId, storeId } = member
    formDataFolder(planned.config.data, { nodeId, storeId, clusterId, generation: 1, entries })
    rmSync(join(planned.folder, FORMING_MARK), { force: true })
  }
  return { clusterId, rootKeyPath, caPem: authorities.root.certificatePem }
}

/** Whether a forming that did not end has left its traces beside this configuration. */
export function isHalfFormed(folder: string): boolean {
  return existsSync(join(folder, FORMING_MARK))
}

function writeCredentials(config: ControllerConfig, leaf: CertifiedKey, caPem: string): void {
  const { cert, key, ca } = config.identity
  for (const path of [cert, key, ca, config.data]) mkdirSync(dirname(path), { recursive: true })
  writeSecretFile(key, leaf.privateKeyPem)
  writePublicFile(cert, leaf.certificatePem)
  writePublicFile(ca, caPem)
}

async function makeAuthorities(trustDomain: string, nowMs: number): Promise<Authorities> {
  const root = await createRootAuthority({
    commonName: `${trustDomain} root`,
    validity: validityFrom(nowMs, ROOT_LIFETIME_MS),
  })
  const issuing = await createIssuingAuthority({
    commonName: `${trustDomain} issuing`,
    root,
    validity: validityFrom(nowMs, ISSUING_LIFETIME_MS),
  })
  return { root, issuing }
}

async function makeMember(
  planned: PlannedConfig,
  { issuing }: Authorities,
  { nowMs }: FormInput,
): Promise<FormedMember> {
  const { config } = planned
  const leaf = await issueControllerCertificate({
    issuer: issuing,
    trustDomain: config.trustDomain,
    id: config.id,
    hosts: advertisedHosts(config),
    validity: validityFrom(nowMs, LEAF_LIFETIME_MS),
  })
  const [certificate] = parseCertificates(leaf.certificatePem)
  const member = create(MemberSchema, {
    id: config.id,
    voter: true,
    address: config.cluster.advertise,
    storeId: newOpaqueId(),
    publicKeySha256: certificate.publicKeySha256,
  })
  return { planned, leaf, member }
}

function admissionOf({ leaf, member }: FormedMember): FormingAdmission {
  const { id: nodeId, storeId, address } = member
  const { certificatePem } = leaf
  const [{ native }] = parseCertificates(certificatePem)
  const publicKeySpki = native.publicKey.export({ type: 'spki', format: 'der' })
  return { nodeId, storeId, address, certificatePem, publicKeySpki }
}

async function adminRecords({ adminName, password }: FormInput): Promise<SeedRecord[]> {
  return formingRecords({
    adminId: newShortId(),
    adminAuthenticatorId: newShortId(),
    adminName,
    passwordHash: await hashPassword(password),
  })
}

function formingCommand(clusterId: string, records: SeedRecord[]): Uint8Array {
  return toBinary(
    CommandSchema,
    create(CommandSchema, {
      kind: CommandKind.FORM,
      level: featureLevel,
      payload: toBinary(FormSchema, create(FormSchema, { clusterId, records })),
    }),
  )
}

/** The log that all members begin with, byte for byte the same. */
function firstEntries(members: readonly Member[], command: Uint8Array, timeMs: number): Entry[] {
  const sorted = [...members].sort((a, b) => (a.id < b.id ? -1 : 1))
  const configuration = toBinary(
    ConfigurationSchema,
    create(ConfigurationSchema, { members: sorted }),
  )
  return [
    { index: 1, term: 1, timeMs, type: 'configuration', data: configuration },
    { index: 2, term: 1, timeMs, type: 'command', data: command },
  ]
}
