import { readFileSync } from 'node:fs'

interface Manifest {
  readonly version: string
}

/** Of the package, without a leading v. */
export function programVersion(): string {
  const manifest = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(manifest, 'utf8')) as Manifest).version
}
