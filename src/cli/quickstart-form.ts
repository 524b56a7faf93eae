import { randomBytes } from 'node:crypto'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, CommandSchema, FormSchema } from '../../proto/gen/command_pb.ts'
import type { SeedRecord } from '../../proto/gen/command_pb.ts'
import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import type { Member } from '../../proto/gen/membership_pb.ts'
import { hashPassword } from '../api/auth/password.ts'
import { formingSecrets } from '../cluster/wrap-secrets.ts'
import type { FormingAdmission } from '../cluster/wrap-secrets.ts'
import { API_NAMES } from '../config/options.ts'
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
import { writeSecretFile } from '../pki/key-file.ts'
import type { Entry } from '../raft/types.ts'
import { formDataFolder } from '../store/form-data-folder.ts'
import { ADMIN_FILE_NAME, FORMING_NAME, LOOPBACK } from './quickstart-plan.ts'
import type { AdminFile, ControllerPlan, QuickstartPlan } from './quickstart-plan.ts'

const ADMIN_NAME = 'admin'
/** 24 characters of base64url: 144 random bits. */
const PASSWORD_BYTES = 18
const FEATURE_LEVEL = 1

interface Authorities {
  readonly root: CertifiedKey
  readonly issuing: CertifiedKey
}

interface FormedMember {
  readonly plan: ControllerPlan
  readonly leaf: CertifiedKey
  readonly member: Member
}

/**
 * Makes everything a new cluster needs. Built in DIR/.forming and moved into place, admin.json last: a DIR with it is
 * whole, one without has never run and is made anew.
 */
export async function formCluster(plan: QuickstartPlan, nowMs: number): Promise<void> {
  const building = join(plan.dir, FORMING_NAME)
  removeLeftovers(plan)
  mkdirSync(building, { mode: 0o700 })
  const clusterId = formatUuid(newUuidv7(nowMs))
  const trustDomain = `quickstart-${randomBytes(4).toString('hex')}.flotilla.internal`
  const authorities = await makeAuthorities(trustDomain, nowMs)
  writeAuthorities(building, authorities)
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  const members: FormedMember[] = []
  for (const controller of plan.controllers) {
    members.push(await makeMember(controller, authorities, trustDomain, nowMs))
  }
  const secrets = await formingSecrets({
    clusterId,
    admissions: members.map(admissionOf),
    issuing: authorities.issuing,
    nowMs,
  })
  const entries = firstEntries(
    members.map(({ member }) => member),
    formingCommand(clusterId, await hashPassword(password), secrets),
    nowMs,
  )
  for (const { plan: controller, leaf, member } of members) {
    const folder = join(building, controller.id)
    mkdirSync(folder, { mode: 0o700 })
    writeFileSync(join(folder, 'config.yml'), configText(controller, trustDomain))
    writeFileSync(join(folder, 'cert.pem'), leaf.certificatePem)
    writeFileSync(join(folder, 'ca.pem'), authorities.root.certificatePem)
    writeSecretFile(join(folder, 'controller.key'), leaf.privateKeyPem)
    const { id: nodeId, storeId } = member
    formDataFolder(join(folder, 'data'), { nodeId, storeId, clusterId, generation: 1, entries })
  }
  moveIntoPlace(plan, building)
  const admin: AdminFile = {
    username: ADMIN_NAME,
    password,
    controllers: plan.controllers.map(({ url }) => url),
    ca: join(plan.dir, 'ca.pem'),
  }
  writeSecretFile(join(plan.dir, ADMIN_FILE_NAME), `${JSON.stringify(admin, null, 2)}\n`)
}

/** Only called for a DIR that never ran: nothing in it is of value. */
function removeLeftovers(plan: QuickstartPlan): void {
  const names = [FORMING_NAME, 'ca.pem', 'pki']
  for (let number = 1; number <= 9; number += 1) names.push(`ctrl${number}`)
  for (const name of names) rmSync(join(plan.dir, name), { recursive: true, force: true })
}

function moveIntoPlace(plan: QuickstartPlan, building: string): void {
  const names = ['ca.pem', 'pki', ...plan.controllers.map(({ id }) => id)]
  for (const name of names) renameSync(join(building, name), join(plan.dir, name))
  rmSync(building, { recursive: true })
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

function writeAuthorities(building: string, { root, issuing }: Authorities): void {
  const folder = join(building, 'pki')
  mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(building, 'ca.pem'), root.certificatePem)
  writeSecretFile(join(folder, 'root.key'), root.privateKeyPem)
  writeFileSync(join(folder, 'issuing.pem'), issuing.certificatePem)
}

async function makeMember(
  plan: ControllerPlan,
  { issuing }: Authorities,
  trustDomain: string,
  nowMs: number,
): Promise<FormedMember> {
  const leaf = await issueControllerCertificate({
    issuer: issuing,
    trustDomain,
    id: plan.id,
    hosts: ['localhost', LOOPBACK, '::1'],
    validity: validityFrom(nowMs, LEAF_LIFETIME_MS),
  })
  const [certificate] = parseCertificates(leaf.certificatePem)
  const member = create(MemberSchema, {
    id: plan.id,
    voter: true,
    address: `${LOOPBACK}:${plan.meshPort}`,
    storeId: newOpaqueId(),
    publicKeySha256: certificate.publicKeySha256,
  })
  return { plan, leaf, member }
}

function admissionOf({ leaf, member }: FormedMember): FormingAdmission {
  const { id: nodeId, storeId, address } = member
  const { certificatePem } = leaf
  const [{ native }] = parseCertificates(certificatePem)
  const publicKeySpki = native.publicKey.export({ type: 'spki', format: 'der' })
  return { nodeId, storeId, address, certificatePem, publicKeySpki }
}

function formingCommand(
  clusterId: string,
  passwordHash: string,
  secrets: readonly SeedRecord[],
): Uint8Array {
  const records = formingRecords({
    adminId: newShortId(),
    adminAuthenticatorId: newShortId(),
    adminName: ADMIN_NAME,
    passwordHash,
  })
  return toBinary(
    CommandSchema,
    create(CommandSchema, {
      kind: CommandKind.FORM,
      level: FEATURE_LEVEL,
      payload: toBinary(
        FormSchema,
        create(FormSchema, { clusterId, records: [...records, ...secrets] }),
      ),
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

function configText(plan: ControllerPlan, trustDomain: string): string {
  return `# ${plan.id} of a quickstart cluster. Paths start at the folder of this file; 'flotilla controller options' lists every key.
id: ${plan.id}
data: data
trustDomain: ${trustDomain}
identity:
  cert: cert.pem
  key: controller.key
  ca: ca.pem
cluster:
  bind: ${LOOPBACK}:${plan.meshPort}
  advertise: ${LOOPBACK}:${plan.meshPort}
routers:
  bind: ${LOOPBACK}:${plan.routerPort}
web:
  - bind: ${LOOPBACK}:${plan.webPort}
    advertise: ${LOOPBACK}:${plan.webPort}
    apis: [${API_NAMES.join(', ')}]
`
}
