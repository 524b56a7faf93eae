import { create } from '@bufbuild/protobuf'
import { type SeedRecord, SeedRecordSchema } from '../../../proto/gen/command_pb.ts'
import {
  permissivePrimaryRules,
  permissiveSecondaryRules,
} from '../../entities/parts/auth-policy-factors.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { seededConfigTypes } from './seed-config-types.ts'
import { seededIdentityTypes } from './seed-identity-types.ts'

interface OperatingSystems {
  readonly type: string
  readonly versions: readonly string[]
}

const android = { type: 'Android', versions: ['9', '10', '11'] }
const ios = { type: 'iOS', versions: ['11', '12'] }
const linux = { type: 'Linux', versions: ['4.14', '4.19', '5.4', '5.9'] }
const macos = { type: 'macOS', versions: ['10.15', '11.0'] }
const windows = { type: 'Windows', versions: ['Vista', '7', '8', '10', '2000'] }

/**
 * The types of posture checks that every OpenZiti installation lists. The first log entry of a
 * cluster contains them, so a cluster has the types of the version that created it.
 */
const seededPostureTypes: readonly {
  readonly id: string
  readonly name: string
  readonly operatingSystems: readonly OperatingSystems[]
}[] = [
  {
    id: 'OS',
    name: 'Operating System Check',
    operatingSystems: [windows, linux, android, macos, ios],
  },
  { id: 'PROCESS', name: 'Process Check', operatingSystems: [windows, linux, macos] },
  { id: 'DOMAIN', name: 'Windows Domain Check', operatingSystems: [windows] },
  { id: 'MAC', name: 'MAC Address Check', operatingSystems: [windows, linux, macos, android] },
  {
    id: 'PROCESS_MULTI',
    name: 'Process Multi Check',
    operatingSystems: [windows, linux, macos].map(({ type }) => ({ type, versions: [] })),
  },
]

interface FormingInput {
  readonly adminId: string
  readonly adminAuthenticatorId: string
  /**
   * User name of the default administrator; the name of its identity is the same as in OpenZiti.
   */
  readonly adminName: string
  /** Argon2id hash of the password, as a PHC string. */
  readonly passwordHash: string
}

const DEFAULT_ADMIN_NAME = 'Default Admin'

function seed(entity: KindName, id: string, fields: Readonly<Record<string, unknown>>): SeedRecord {
  const json = new TextEncoder().encode(canonicalJson(fields))
  return create(SeedRecordSchema, { entity, id, json })
}

/** The initial records of a cluster, without the administrator. Most of them are as in OpenZiti. */
export function commonSeedRecords(): SeedRecord[] {
  return [
    ...seededIdentityTypes.map(({ id }) => seed('identityType', id, { name: id })),
    seed('authPolicy', 'default', {
      name: 'Default',
      isSystem: true,
      primary: permissivePrimaryRules,
      secondary: permissiveSecondaryRules,
    }),
    ...seededConfigTypes.map(({ id, name, target, schema }) =>
      seed('configType', id, { name, target, schema }),
    ),
    ...seededPostureTypes.map(({ id, name, operatingSystems }) =>
      seed('postureCheckType', id, { name, operatingSystems, version: '1' }),
    ),
  ]
}

/** Records for the first command of a new cluster: the common records, and the administrator. */
export function initialSeedRecords(input: FormingInput): SeedRecord[] {
  return [
    ...commonSeedRecords(),
    seed('identity', input.adminId, {
      name: DEFAULT_ADMIN_NAME,
      isAdmin: true,
      isDefaultAdmin: true,
    }),
    seed('authenticator', input.adminAuthenticatorId, {
      identityId: input.adminId,
      method: 'updb',
      username: input.adminName,
      passwordHash: input.passwordHash,
    }),
  ]
}
