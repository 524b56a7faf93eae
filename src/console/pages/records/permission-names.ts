import { kinds } from './kinds.ts'

const actions = ['read', 'create', 'update', 'delete'] as const
/** Kinds whose operations require an administrator. */
const adminKinds: readonly string[] = ['authenticator', 'controller-setting', 'revocation']

/** Permissions that an identity may have; one without an action covers all actions. */
export const permissionNames: readonly string[] = [
  'admin_readonly',
  'controllers',
  'controllers.read',
  'ops',
  'ops.read',
  'ops.update',
  'ops.delete',
  ...[...new Set(kinds.map(({ permission }) => permission))]
    .filter((kind) => !adminKinds.includes(kind))
    .flatMap((kind) => [kind, ...actions.map((action) => `${kind}.${action}`)]),
].sort()
