/** Columns that a list computes from several fields or from records of other kinds. */
export const computedColumns: ReadonlySet<string> = new Set([
  'certificateEnd',
  'clientAddress',
  'configCount',
  'configValue',
  'host',
  'hostAddress',
  'hosts',
  'identityCount',
  'isEdgeRouter',
  'isRouterOnline',
  'policyCount',
  'requires',
  'routerCount',
  'serviceCount',
  'use',
  'usedBy',
])
