/** Kinds of keys that routers may have. */
export const routerKeyAlgorithms = [
  'EC:P-256',
  'EC:P-384',
  'RSA:2048',
  'RSA:3072',
  'RSA:4096',
] as const
export type RouterKeyAlgorithm = (typeof routerKeyAlgorithms)[number]
