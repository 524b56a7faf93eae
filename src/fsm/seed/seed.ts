import { create } from '@bufbuild/protobuf'
import { type SeedRecord, SeedRecordSchema } from '../../../proto/gen/command_pb.ts'
import { openPrimary, openSecondary } from '../../entities/parts/auth-policy-factors.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { seededConfigTypes } from './seed-config-types.ts'
import { seededIdentityTypes } from './seed-identity-types.ts'
import { seededPostureTypes } from './seed-posture-types.ts'

export interface FormingInput {
  readonly adminId: string
  readonly adminAuthenticatorId: string
  /**
   * The user name that the default admin logs in with; it is called as in every installation of the
   * API family.
   */
  readonly adminName: string
  /** PHC string of Argon2id. */
  readonly passwordHash: string
}

const DEFAULT_ADMIN_NAME = 'Default Admin'

function seed(entity: KindName, id: string, fields: Readonly<Record<string, unknown>>): SeedRecord {
  const json = new TextEncoder().encode(canonicalJson(fields))
  return create(SeedRecordSchema, { entity, id, json })
}

/**
 * Records of a new cluster for the forming command: those that every OpenZiti installation has.
 */
export function formingRecords(input: FormingInput): SeedRecord[] {
  return [
    ...seededIdentityTypes.map(({ id }) => seed('identityType', id, { name: id })),
    seed('authPolicy', 'default', {
      name: 'Default',
      isSystem: true,
      primary: openPrimary,
      secondary: openSecondary,
    }),
    ...seededConfigTypes.map(({ id, name, target, schema }) =>
      seed('configType', id, { name, target, schema }),
    ),
    ...seededPostureTypes.map(({ id, name, operatingSystems }) =>
      seed('postureCheckType', id, { name, operatingSystems, version: '1' }),
    ),
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
