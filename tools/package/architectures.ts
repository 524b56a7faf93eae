/** The architectures of releases, with their names in packages of Node.js and in Debian. */
export const architectures = {
  x64: { debian: 'amd64' },
  arm64: { debian: 'arm64' },
} as const

export type Architecture = keyof typeof architectures
