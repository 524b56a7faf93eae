import type { OperationShape } from './define.ts'

/** Every operation of a kind, each with the same permission. */
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

/** Every operation of a kind on the management API, with the permission of each. */
export function crud(permission: string): Readonly<Record<OperationShape, string>> {
  return {
    list: `${permission}.read`,
    create: `${permission}.create`,
    detail: `${permission}.read`,
    replace: `${permission}.update`,
    patch: `${permission}.update`,
    delete: `${permission}.delete`,
  }
}
