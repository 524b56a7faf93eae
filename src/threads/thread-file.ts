import { extname } from 'node:path'

/**
 * Where the program of a thread lies: beside this file, as source or built, whichever this one is.
 */
export function threadFile(name: 'wal' | 'raft' | 'schema' | 'certificate'): URL {
  return new URL(`./${name}-thread${extname(import.meta.filename)}`, import.meta.url)
}
