import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { CONTENT_CODINGS, type ContentCoding, fileMediaType } from './file-types.ts'

const FILES_MAX = 5_000
const BYTES_MAX = 64 * 1024 * 1024
const DEPTH_MAX = 12
const HASH_CHARACTERS = 16

/** One representation of a file: uncompressed or compressed. */
export interface FileRepresentation {
  readonly bytes: Buffer
  /** A strong ETag, different for each representation (RFC 9110 8.8.3.3). */
  readonly etag: string
}

/** A file in memory, uncompressed and in its compressed forms. */
export interface StaticFile {
  readonly mediaType: string
  /**
   * True: the name has the form of a name with a hash of the content, so a cache may store the file
   * without revalidation.
   */
  readonly isImmutable: boolean
  readonly plain: FileRepresentation
  readonly coded: Readonly<Partial<Record<ContentCoding, FileRepresentation>>>
}

/**
 * Matches a name such as `index-B3xk9_2a.js`, in which a bundler has put a hash of at least 8
 * characters. A hash nearly always has a digit, a capital or `_`; the name `worker-settings.js` has
 * none of them and may change its content.
 */
const HASHED_NAME = /-(?=[a-z-]*[A-Z0-9_])[A-Za-z0-9_-]{8,}\.[A-Za-z0-9]+$/

/**
 * The files of a folder, kept in memory and found by exact path. So no request reads the disk, and
 * no request path can name a file outside the folder. `x.js.br` and `x.js.gz` are compressed forms
 * of `x.js`. Names that begin with a dot and symbolic links are ignored.
 */
export class FileSet {
  readonly #files: ReadonlyMap<string, StaticFile>
  readonly #bytes: number

  private constructor(files: ReadonlyMap<string, StaticFile>, bytes: number) {
    this.#files = files
    this.#bytes = bytes
  }

  /** @throws {Error} when the folder cannot be read, or has too many bytes, files or levels. */
  static load(folder: string): FileSet {
    const contents = new Map<string, Buffer>()
    const bytes = readInto(contents, folder, '', { bytes: 0, depth: 0 })
    const files = new Map<string, StaticFile>()
    for (const [path, content] of contents) {
      if (isFormOfAnother(path, contents)) continue
      files.set(path, {
        mediaType: fileMediaType(path),
        isImmutable: HASHED_NAME.test(path),
        plain: bodyOf(content, ''),
        coded: codedFormsOf(path, contents),
      })
    }
    return new FileSet(files, bytes)
  }

  /** @param path path below the folder, with `/` between names, such as `assets/index.js`. */
  get(path: string): StaticFile | null {
    return this.#files.get(path) ?? null
  }

  get fileCount(): number {
    return this.#files.size
  }

  /** Total bytes of all files, compressed forms included. */
  get byteCount(): number {
    return this.#bytes
  }
}

function readInto(
  contents: Map<string, Buffer>,
  folder: string,
  prefix: string,
  { bytes, depth }: { readonly bytes: number; readonly depth: number },
): number {
  if (depth > DEPTH_MAX) throw new Error(`${folder} is nested deeper than ${DEPTH_MAX} folders`)
  let sum = bytes
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.')) continue
    const path = prefix + entry.name
    const inFolder = join(folder, entry.name)
    if (entry.isDirectory()) {
      sum = readInto(contents, inFolder, `${path}/`, { bytes: sum, depth: depth + 1 })
    } else if (entry.isFile()) {
      const content = readFileSync(inFolder)
      sum += content.length
      if (sum > BYTES_MAX) throw new Error(`${inFolder} is beyond ${BYTES_MAX} bytes of files`)
      contents.set(path, content)
      if (contents.size > FILES_MAX) throw new Error(`${inFolder} is beyond ${FILES_MAX} files`)
    }
  }
  return sum
}

function isFormOfAnother(path: string, contents: ReadonlyMap<string, Buffer>): boolean {
  return CONTENT_CODINGS.some(
    ({ extension }) => path.endsWith(extension) && contents.has(path.slice(0, -extension.length)),
  )
}

function codedFormsOf(path: string, contents: ReadonlyMap<string, Buffer>): StaticFile['coded'] {
  return Object.fromEntries(
    CONTENT_CODINGS.flatMap(({ coding, extension }) => {
      const content = contents.get(path + extension)
      return content === undefined ? [] : [[coding, bodyOf(content, `-${coding}`)]]
    }),
  )
}

function bodyOf(bytes: Buffer, suffix: string): FileRepresentation {
  const digest = hash('sha256', bytes, 'base64url').slice(0, HASH_CHARACTERS)
  return { bytes, etag: `"${digest}${suffix}"` }
}
