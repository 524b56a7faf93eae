/**
 * Types that an identity says that it is of. Only `Router` means something to the controllers; the
 * other words are for people and their tools. `level` is the feature level that brought the record.
 */
export const seededIdentityTypes = [
  { id: 'Default', level: 1 },
  { id: 'Router', level: 1 },
  { id: 'User', level: 2 },
  { id: 'Device', level: 2 },
  { id: 'Service', level: 2 },
] as const
