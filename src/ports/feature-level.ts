import { CommandKind } from '../../proto/gen/command_pb.ts'

/**
 * The newest feature level that this version supports; only this constant defines it. A release
 * that adds a stored field, a kind of record or a kind of command raises it by one, and each
 * addition declares that level as its `since`.
 *
 * 0.1.0 has level 1, 0.2.0 has level 2, and 0.3.0 has level 3. The first addition after 0.3.0
 * raises this and the `NEXT_LEVEL` of the tests by one, and declares the new level as its `since`.
 */
export const FEATURE_LEVEL = 3

/**
 * Feature level that OIDC sessions require, because controllers of older versions would misread
 * them.
 */
export const OIDC_FEATURE_LEVEL = 2

/** Feature level from which the membership configuration lists the keys of removed controllers. */
export const REMOVED_KEYS_FEATURE_LEVEL = 2

/** Feature level that the records of a network migrated from OpenZiti require. */
export const MIGRATION_FEATURE_LEVEL = 3

/** Feature level from which the audit log stores the changes of network records. */
export const HISTORY_FEATURE_LEVEL = 3

/** Feature level from which service policies and role attributes can have an expiry time. */
export const ACCESS_EXPIRY_FEATURE_LEVEL = 3

/**
 * Feature level from which records store when identities were last seen, and since when routers are
 * online or offline.
 */
export const LAST_SEEN_FEATURE_LEVEL = 3

/**
 * Feature level from which all controllers activate the pending certificate of a router when the
 * router connects with it.
 */
export const ROUTER_RENEWAL_FEATURE_LEVEL = 3

/** Feature level from which a log-in accepts once more the code that verified a new MFA factor. */
export const MFA_ENROLLMENT_CODE_REUSE_FEATURE_LEVEL = 3

/**
 * Feature level from which a session may repeat the MFA code with which it last passed the second
 * factor.
 */
export const MFA_LAST_CODE_REUSE_FEATURE_LEVEL = 3

/** Feature level from which a revocation of a `jti` outlives every refresh token. */
export const TOKEN_REVOCATION_FEATURE_LEVEL = 3

export type KnownCommandKind = Exclude<CommandKind, typeof CommandKind.UNSPECIFIED>

/**
 * Feature level of each kind of command. The program does not compile without a level for each
 * kind: a voter whose version does not know the command would stop.
 */
const commandLevels: Readonly<Record<KnownCommandKind, number>> = {
  [CommandKind.FORM]: 1,
  [CommandKind.ENTITY_CREATE]: 1,
  [CommandKind.ENTITY_REPLACE]: 1,
  [CommandKind.ENTITY_PATCH]: 1,
  [CommandKind.ENTITY_DELETE]: 1,
  [CommandKind.ENTITY_BATCH]: 1,
  [CommandKind.SESSION_CREATE]: 1,
  [CommandKind.SESSION_DELETE]: 1,
  [CommandKind.SESSION_TOUCH]: 1,
  [CommandKind.SESSION_EXPIRE]: 1,
  [CommandKind.IDENTITY_DISABLE]: 1,
  [CommandKind.IDENTITY_ENABLE]: 1,
  [CommandKind.SERVICE_CONFIGS_ASSOCIATE]: 1,
  [CommandKind.SERVICE_CONFIGS_DISASSOCIATE]: 1,
  [CommandKind.PASSWORD_ATTEMPT]: 1,
  [CommandKind.ADMIN_RECOVER]: 1,
  [CommandKind.MFA_BEGIN]: 1,
  [CommandKind.MFA_PROVE]: 1,
  [CommandKind.MFA_REMOVE]: 1,
  [CommandKind.MFA_ATTEMPT]: 1,
  [CommandKind.MFA_RESEAL]: 1,
  [CommandKind.CA_VERIFY]: 1,
  [CommandKind.AUTHENTICATOR_REQUEST_EXTEND]: 1,
  [CommandKind.ENROLL]: 1,
  [CommandKind.CA_ENROLL]: 1,
  [CommandKind.ROUTER_EXTEND]: 1,
  [CommandKind.AUTHENTICATOR_EXTEND]: 1,
  [CommandKind.AUTHENTICATOR_EXTEND_VERIFY]: 1,
  [CommandKind.SESSION_CERTIFICATE_CREATE]: 1,
  [CommandKind.SESSION_CERTIFICATE_DELETE]: 1,
  [CommandKind.TICKET_CREATE]: 1,
  [CommandKind.TICKET_REDEEM]: 1,
  [CommandKind.TICKET_REVOKE]: 1,
  [CommandKind.ADMISSION_DELETE]: 1,
  [CommandKind.SECRET_ROTATE]: 1,
  [CommandKind.SECRET_SHARE]: 1,
  [CommandKind.SERVICE_SESSION_CREATE]: 1,
  [CommandKind.SERVICE_SESSION_END]: 1,
  [CommandKind.TOKEN_ENROLL]: 1,
  [CommandKind.HOSTED_TERMINATOR_CREATE]: 1,
  [CommandKind.HOSTED_TERMINATOR_UPDATE]: 1,
  [CommandKind.HOSTED_TERMINATORS_REMOVE]: 1,
  [CommandKind.ROUTER_EXTEND_BEGIN]: 1,
  [CommandKind.ROUTER_EXTEND_VERIFY]: 1,
  [CommandKind.RESTORE_BEGIN]: 2,
  [CommandKind.RESTORE_CHUNK]: 2,
  [CommandKind.RESTORE_END]: 2,
  [CommandKind.LOG_TIME_RESET]: 2,
  [CommandKind.ACCESS_REVOKE]: 2,
  [CommandKind.CERTIFICATE_ADOPT]: MIGRATION_FEATURE_LEVEL,
  [CommandKind.PASSWORD_REHASH]: MIGRATION_FEATURE_LEVEL,
  [CommandKind.ACCESS_END]: ACCESS_EXPIRY_FEATURE_LEVEL,
  [CommandKind.ROUTER_PRESENCE]: LAST_SEEN_FEATURE_LEVEL,
  [CommandKind.INTEGRITY_START]: 1,
  [CommandKind.INTEGRITY_CLAIM]: 1,
  [CommandKind.INTEGRITY_END]: 1,
  [CommandKind.INTEGRITY_REBUILD]: 1,
  [CommandKind.INTEGRITY_DETACH]: 1,
  [CommandKind.CLUSTER_ACTION]: 1,
  [CommandKind.FEATURE_LEVEL_RAISE]: 1,
}

/**
 * Lowest feature level at which this kind of command may be proposed; its payload may require a
 * higher one.
 */
export function commandFeatureLevel(kind: CommandKind): number {
  return (commandLevels as Readonly<Record<number, number | undefined>>)[kind] ?? 1
}

/**
 * The kind of command that stores renewed certificates which the router will not confirm over its
 * channel. Below `ROUTER_RENEWAL_FEATURE_LEVEL`, they replace the current ones at once; from this
 * level on, they are pending until the router connects with them.
 */
export function routerRenewalCommandKind(featureLevel: number): CommandKind {
  return featureLevel < ROUTER_RENEWAL_FEATURE_LEVEL
    ? CommandKind.ROUTER_EXTEND
    : CommandKind.ROUTER_EXTEND_BEGIN
}

/**
 * Thrown when a log or state has a feature level that this version does not support, so that the
 * program must not read any of its data.
 */
export class FeatureLevelUnknownError extends Error {
  override readonly name = 'FeatureLevelUnknownError'

  /** @param where names the source of the data, as the beginning of a sentence. */
  constructor(where: string, level: number) {
    super(
      `${where} has feature level ${level}, this version supports up to ${FEATURE_LEVEL}; install the version that the other controllers run`,
    )
  }
}
