/**
 * Types that an identity can have. The controllers only distinguish `Router` from the rest; the
 * other types are for users and their tools. `level` is the feature level that added the record.
 */
export const seededIdentityTypes = [
  { id: 'Default', level: 1 },
  { id: 'Router', level: 1 },
  { id: 'User', level: 2 },
  { id: 'Device', level: 2 },
  { id: 'Service', level: 2 },
] as const
