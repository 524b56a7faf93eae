import type { KindName } from '../../entities/kind-names.ts'
import { canCallOperation, type Permission } from '../../auth/principal/permissions.ts'
import { Problem } from '../../lib/problems.ts'
import type { RequestContext } from '../http/request-context.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import { listPermissionForKind } from './previewed-writes.ts'

/**
 * Permissions of the caller, for responses about several kinds of record. The response omits the
 * parts that the caller may not read and lists the missing permissions.
 */
export class CallerReadPermissions {
  readonly #call: RequestContext
  readonly #known = new Map<Permission, boolean>()

  constructor(call: RequestContext) {
    this.#call = call
  }

  has(permission: Permission): boolean {
    let may = this.#known.get(permission)
    if (may === undefined) {
      may = canCallOperation(requireCaller(this.#call), permission, this.#call)
      this.#known.set(permission, may)
    }
    return may
  }

  /** Whether the caller may list the records of a kind on the management API. */
  mayList(kind: KindName): boolean {
    const permission = listPermissionForKind(kind)
    return permission === null || this.has(permission)
  }

  /**
   * Returns the result of `make`; without the permission, returns null and does not call `make`.
   */
  only<T>(permission: Permission, make: () => T): T | null {
    // @guard explanation-tells-records--kinds
    return this.has(permission) ? make() : null
  }

  /** @throws {Problem} UNAUTHORIZED. */
  require(permission: Permission): void {
    if (this.has(permission)) return
    const detail = `the operation needs the permission ${permission}`
    throw new Problem('UNAUTHORIZED', { detail })
  }

  /** The permissions that were checked and that the caller lacks. */
  withheld(): readonly Permission[] {
    return [...this.#known].flatMap(([permission, may]) => (may ? [] : [permission])).sort()
  }
}
