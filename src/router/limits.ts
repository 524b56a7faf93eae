/** The router program as a whole. */
export const routerProgramLimits = {
  /** A clean stop takes no longer. */
  stopMsMax: 5000,
} as const
