import { existsSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'

import {
  CommandKind,
  CommandSchema,
  FormSchema,
  type SeedRecord,
} from '../../../proto/gen/command_pb.ts'
import { ConfigurationSchema, type Member, MemberSchema } from '../../../proto/gen/membership_pb.ts'
import { hashPassword } from '../../auth/factors/password-verifier.ts'
import { type BootstrapMember, createBootstrapRecords } from '../../cluster/secrets/wrap-secrets.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { initialSeedRecords } from '../../fsm/seed/seed.ts'
import { newOpaqueId, newShortId } from '../../lib/random.ts'
import { formatUuid, newUuidv7 } from '../../lib/text/uuid.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
  ISSUING_LIFETIME_MS,
  LEAF_LIFETIME_MS,
  ROOT_LIFETIME_MS,
  validityStartingAt,
} from '../../pki/authority/authority.ts'
import { parseCertificates } from '../../pki/certificate.ts'
import { syncFolder, writePublicFile, writeSecretFile } from '../../pki/secret-file.ts'
import { limitValidity } from '../../pki/authority/renewal.ts'
import { createSystemActor } from '../../ports/actor.ts'
import { FEATURE_LEVEL, commandFeatureLevel } from '../../ports/feature-level.ts'
import type { Entry } from '../../raft/types.ts'
import { createDataFolder } from '../../store/folder/create-data-folder.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { advertisedHosts } from '../../config/controller/advertised-hosts.ts'
import type { PlannedConfig } from './config-from-flags.ts'
import type { SuppliedAuthorities } from './supplied-authorities.ts'

/**
 * Marker file that exists next to a configuration while `cluster init` creates the controller.
 * While the marker exists and there is no data folder, a repeated `cluster init` may overwrite the
 * other files, except those of an authority that the operator supplies.
 */
export const CREATION_MARKER_NAME = '.forming'
const MARK_SUPPLIED = 'with an authority that was supplied\n'

interface FormInput {
  /** The first members of the cluster, each with the same trust domain; `cluster init` has one. */
  readonly controllers: readonly [PlannedConfig, ...PlannedConfig[]]
  readonly adminName: string
  readonly password: string
  readonly nowMs: number
  /**
   * Certificate authorities that the operator supplies, used instead of generated ones; only for a
   * single controller.
   */
  readonly supplied?: SuppliedAuthorities | null
  /**
   * Called after everything except the data folders is written. If it throws, no controller can
   * start, because the data folders are missing.
   */
  readonly beforeData?: () => void
}

interface FormedCluster {
  readonly clusterId: string
  /**
   * Path of the root key (mode 0600); the key is only needed to renew the issuing authority. Null
   * when the authority was supplied.
   */
  readonly rootKeyPath: string | null
  readonly caPem: string
}

interface Authorities {
  readonly issuing: CertificateWithKey
  readonly caPem: string
  /** Root key as PEM; null when the operator has the root key. */
  readonly rootKeyPem: string | null
}

interface FormedMember {
  readonly planned: PlannedConfig
  readonly leaf: CertificateWithKey
  readonly member: Member
}

/** Path of the root key of a cluster that was created with this configuration. */
export function clusterRootKeyPath(folder: string): string {
  return join(folder, 'pki', 'root.key')
}

/**
 * Creates everything that a new cluster needs to start: authorities, keys, certificates, the
 * default admin, and a data folder for each of its first controllers. Each data folder appears
 * complete and last, and no controller can run without its data folder, so the caller can repeat
 * the same call after a crash at any point. The caller must have checked that this overwrites
 * nothing of value.
 */
export async function createCluster(input: FormInput): Promise<FormedCluster> {
  const { controllers, nowMs } = input
  const supplied = input.supplied ?? null
  const [first] = controllers
  const { trustDomain } = first.config
  const clusterId = formatUuid(newUuidv7(nowMs))
  for (const { folder } of controllers) {
    makeFolder(folder, 0o700)
    writePublicFile(join(folder, CREATION_MARKER_NAME), markOf(supplied))
  }
  const authorities = await authoritiesOf(supplied, trustDomain, nowMs)
  const rootKeyPath = writeRootKey(first.folder, authorities)
  const members: FormedMember[] = []
  for (const planned of controllers) members.push(await makeMember(planned, authorities, input))
  const records = await createBootstrapRecords({
    clusterId,
    admissions: members.map(admissionOf),
    issuing: authorities.issuing,
    nowMs,
  })
  const admin = await adminRecords(input)
  const entries = firstEntries(
    members.map(({ member }) => member),
    formingCommand(clusterId, [...admin, ...records]),
    nowMs,
  )
  for (const { planned, leaf } of members) {
    writeCredentials(planned.config, leaf, supplied, authorities.caPem)
    if (!planned.isThere) writePublicFile(planned.path, planned.text)
  }
  input.beforeData?.()
  for (const { planned, member } of members) {
    const { id: nodeId, storeId } = member
    createDataFolder(planned.config.data, { nodeId, storeId, clusterId, generation: 1, entries })
    rmSync(join(planned.folder, CREATION_MARKER_NAME), { force: true })
    // Makes the removal of the marker durable: if a power failure restored the marker, a later
    // `cluster init` could replace the keys of this cluster.
    syncFolder(planned.folder)
  }
  return { clusterId, rootKeyPath, caPem: authorities.caPem }
}

/**
 * True when an interrupted `cluster init` left its marker next to this configuration.
 * @param isSupplied true when the operator supplies the authority. A marker counts only if the
 * interrupted `cluster init` had the same kind of authority: with a supplied authority, files next
 * to the marker may belong to the operator.
 */
export function isClusterCreationInterrupted(folder: string, isSupplied: boolean): boolean {
  const path = join(folder, CREATION_MARKER_NAME)
  return existsSync(path) && readFileSync(path, 'utf8') === (isSupplied ? MARK_SUPPLIED : '')
}

function markOf(supplied: SuppliedAuthorities | null): string {
  return supplied === null ? '' : MARK_SUPPLIED
}

/** @returns the path; null when an operator supplied the authority. */
function writeRootKey(folder: string, { rootKeyPem }: Authorities): string | null {
  if (rootKeyPem === null) return null
  const path = clusterRootKeyPath(folder)
  makeFolder(dirname(path), 0o700)
  writeSecretFile(path, rootKeyPem)
  return path
}

/** Writes keys and certificates; files that the operator supplied stay unchanged. */
function writeCredentials(
  config: ControllerConfig,
  leaf: CertificateWithKey,
  supplied: SuppliedAuthorities | null,
  caPem: string,
): void {
  const { cert, key, ca } = config.identity
  for (const path of [cert, key, ca, config.data]) makeFolder(dirname(path))
  if (supplied === null) writePublicFile(ca, caPem)
  if (supplied !== null && supplied.leaf !== null) return
  writeSecretFile(key, leaf.privateKeyPem)
  writePublicFile(cert, leaf.certificatePem)
}

async function authoritiesOf(
  supplied: SuppliedAuthorities | null,
  trustDomain: string,
  nowMs: number,
): Promise<Authorities> {
  if (supplied === null) return await makeAuthorities(trustDomain, nowMs)
  return { issuing: supplied.issuing, caPem: supplied.caPem, rootKeyPem: null }
}

async function makeAuthorities(trustDomain: string, nowMs: number): Promise<Authorities> {
  const root = await createRootAuthority({
    commonName: `${trustDomain} root`,
    validity: validityStartingAt(nowMs, ROOT_LIFETIME_MS),
  })
  const issuing = await createIssuingAuthority({
    commonName: `${trustDomain} issuing`,
    root,
    validity: validityStartingAt(nowMs, ISSUING_LIFETIME_MS),
  })
  return { issuing, caPem: root.certificatePem, rootKeyPem: root.privateKeyPem }
}

async function makeMember(
  planned: PlannedConfig,
  { issuing }: Authorities,
  { nowMs, supplied }: FormInput,
): Promise<FormedMember> {
  const { config } = planned
  const [issuer] = parseCertificates(issuing.certificatePem)
  const leaf =
    supplied?.leaf ??
    (await issueControllerCertificate({
      issuer: issuing,
      trustDomain: config.trustDomain,
      id: config.id,
      hosts: advertisedHosts(config),
      // Limited to the expiry of the issuer, because a supplied authority may expire soon.
      validity: limitValidity(issuer, nowMs, LEAF_LIFETIME_MS),
    }))
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

function admissionOf({ leaf, member }: FormedMember): BootstrapMember {
  const { id: nodeId, storeId, address } = member
  const { certificatePem } = leaf
  const [{ native }] = parseCertificates(certificatePem)
  const publicKeySpki = native.publicKey.export({ type: 'spki', format: 'der' })
  return { nodeId, storeId, address, certificatePem, publicKeySpki }
}

async function adminRecords({ adminName, password }: FormInput): Promise<SeedRecord[]> {
  return initialSeedRecords({
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
      level: commandFeatureLevel(CommandKind.FORM),
      actor: createSystemActor({ name: 'bootstrap' }),
      payload: toBinary(
        FormSchema,
        create(FormSchema, { clusterId, records, featureLevel: FEATURE_LEVEL }),
      ),
    }),
  )
}

/** The first log entries, which are identical on all members byte for byte. */
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
