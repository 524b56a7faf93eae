import type { OperationShape } from './define-entity.ts'

/** All operations of a kind, all with the same permission. */
export function crudPermissions(permission: string): Readonly<Record<OperationShape, string>> {
  return {
    list: permission,
    create: permission,
    detail: permission,
    replace: permission,
    patch: permission,
    delete: permission,
  }
}

/** All operations of a kind on the management API, each with its permission. */
export function managementCrudPermissions(
  permission: string,
): Readonly<Record<OperationShape, string>> {
  return {
    list: `${permission}.read`,
    create: `${permission}.create`,
    detail: `${permission}.read`,
    replace: `${permission}.update`,
    patch: `${permission}.update`,
    delete: `${permission}.delete`,
  }
}
