import { Problem } from '../../lib/problems.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import { acceptedCodings } from '../http/responses/accepted-codings.ts'
import type { Reply } from '../http/responses/envelope.ts'
import { matchesEtag } from '../http/responses/etag.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Operation } from '../http/operation.ts'
import type { FileRepresentation, FileSet, StaticFile } from './file-set.ts'
import { CONTENT_CODINGS, type ContentCoding, hasKnownExtension } from './file-types.ts'
import { pageSecurityHeaders, type PageHeaderPolicy } from './page-headers.ts'

/** A folder of static files at a path of a listener. */
export interface FileMount {
  /** Path without a trailing slash, like `/console`. */
  readonly path: string
  readonly policy: PageHeaderPolicy
  /** Null if there are no files; then `missing` is a message with a remedy. */
  readonly files: FileSet | null
  readonly missing: string
}

const INDEX = 'index.html'
const NEVER_STORED = 'no-store'
/** A cache may store the file, but must revalidate it before each use. */
const ALWAYS_CHECKED = 'no-cache'
const KEPT = 'public, max-age=31536000, immutable'

interface MountOperationDeps {
  readonly cluster: Pick<ClusterView, 'members'>
}

/**
 * One operation that serves all files of a mount. The pages use client-side routes, so for a
 * missing file without a known file extension the response is the index page.
 */
export function fileMountOperation({ cluster }: MountOperationDeps, mount: FileMount): Operation {
  return {
    operationId: `${mount.policy}File`,
    summary: `File of ${mount.path}`,
    tag: 'files',
    apis: ['host'],
    method: 'GET',
    path: mount.path,
    permission: 'public',
    headers: [{ name: 'accept-encoding', description: 'br, gzip' }],
    success: 200,
    response: {
      kind: 'bare',
      schema: { name: 'file', schema: { type: 'string' } },
      ignoresAccept: true,
    },
    refusals: [404],
    // The files are served even while this controller must not serve requests from its state.
    isAlwaysServed: true,
    handle: (call) => fileAnswer(call, mount, pageSecurityHeaders(mount.policy, cluster.members())),
  }
}

/**
 * A response with the content of a file.
 * @throws {Problem} NOT_FOUND.
 */
function fileAnswer(
  call: RequestContext,
  mount: FileMount,
  policy: Readonly<Record<string, string>>,
): Reply {
  if (mount.files === null) throw new Problem('NOT_FOUND', { detail: mount.missing })
  const below = call.path.slice(mount.path.length).replace(/^\//, '')
  const file = mount.files.get(nameOf(below)) ?? fallbackOf(below, mount.files)
  if (file === null) throw new Problem('NOT_FOUND', { detail: `path ${call.path} was not found` })
  const { coding, body } = chosenForm(file, call.headers['accept-encoding'])
  const isPage = file.mediaType.startsWith('text/html')
  const isKnown = call.ifNoneMatch !== null && matchesEtag(call.ifNoneMatch, body.etag)
  return {
    status: isKnown ? 304 : 200,
    body: isKnown ? '' : body.bytes,
    contentType: file.mediaType,
    headers: {
      ...policy,
      etag: body.etag,
      vary: 'accept-encoding',
      'cache-control': isPage ? NEVER_STORED : file.isImmutable ? KEPT : ALWAYS_CHECKED,
      ...(coding === null ? {} : { 'content-encoding': coding }),
    },
  }
}

/**
 * The decoded name of the file: the index page for '', and the path itself if it cannot be decoded.
 */
function nameOf(below: string): string {
  if (below === '') return INDEX
  try {
    return decodeURIComponent(below)
  } catch {
    return below
  }
}

/**
 * The index page for a client-side route; null for a path with a known file extension, and for a
 * path with `.` or `..` segments.
 */
function fallbackOf(below: string, files: FileSet): StaticFile | null {
  const isPage = !hasKnownExtension(below) && !/(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(below)
  return isPage ? files.get(INDEX) : null
}

function chosenForm(
  file: StaticFile,
  acceptEncoding: string | undefined,
): { readonly coding: ContentCoding | null; readonly body: FileRepresentation } {
  const accepted = acceptedCodings(acceptEncoding)
  for (const { coding } of CONTENT_CODINGS) {
    const body = file.coded[coding]
    if (body !== undefined && accepted.has(coding)) return { coding, body }
  }
  return { coding: null, body: file.plain }
}
