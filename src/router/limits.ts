/** Limits of the router program as a whole. */
export const routerProgramLimits = {
  /** Maximum duration of a clean stop. */
  stopMsMax: 5000,
} as const
