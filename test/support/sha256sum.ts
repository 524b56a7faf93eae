import { execFileSync } from 'node:child_process'

/** SHA-256 of a file in hex, computed by the program that operators use. */
export function sha256sum(path: string): string {
  return execFileSync('sha256sum', ['--', path], { encoding: 'utf8' }).slice(0, 64)
}
