/** The architectures of releases: how Node's packages and Debian call them. */
export const architectures = {
  x64: { debian: 'amd64' },
  arm64: { debian: 'arm64' },
} as const

export type Architecture = keyof typeof architectures
