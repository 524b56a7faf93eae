import type { ApiName } from '../../auth/principal/permissions.ts'

/** Path at which each API begins. */
export const basePaths: Readonly<Record<ApiName, string>> = {
  client: '/edge/client/v1',
  management: '/edge/management/v1',
  fabric: '/fabric/v1',
  host: '',
  oidc: '/oidc',
}

const CLIENT_ALIAS = '/edge/v1'
/**
 * First path segments of the APIs. A path with any other first segment belongs to the client API,
 * the default.
 */
const ROOTS = ['/edge', '/fabric', '/health-checks', '/metrics', '/oidc']

/** Matches a path with an API version and plain segments, which needs no normalization. */
const PLAIN = /^\/(?:edge\/(?:management|client)|fabric)\/v1(?:\/[\w-]+)*$/

/** Matches a percent escape in or before the API version of a path. */
const ESCAPED_BASE = /^\/(?:edge\/(?:[^/]*\/)?|fabric\/)[^/]*%/

/** Matches the part of a path after the API version. */
const BEHIND_VERSION = /(?<=^\/(?:edge(?:\/management|\/client)?|fabric)\/v1)\/.*/

/** Matches a path after an empty first segment, if no other segment is empty. */
const EMPTY_FIRST = /(?<=^\/)(?:\/[^/]+)+$/

/**
 * Normalizes the path of a request. `/edge/v1` is the client API, and so is a path under an unknown
 * root. The base path of an API must be spelled exactly, so that another spelling cannot bypass the
 * rules of a reverse proxy: a path with dot segments, empty segments or escapes up to its version
 * matches no route. After the version, several slashes count as one, because OpenZiti's console
 * sends them. Two slashes at the start of a path under an unknown root count as one, because the
 * JVM SDK requests `//version`. The query is unchanged.
 */
function canonicalUrl({ url = '/' }: { readonly url?: string | undefined }): string {
  const at = url.indexOf('?')
  const path = at === -1 ? url : url.slice(0, at)
  if (PLAIN.test(path)) return url
  const query = at === -1 ? '' : url.slice(at)
  if (/\/\.{1,2}(?:\/|$)/.test(path)) return url
  const merged = path.replace(BEHIND_VERSION, (behind) => behind.replace(/\/{2,}/g, '/'))
  const afterEmpty = EMPTY_FIRST.exec(merged)?.[0]
  // @guard spellings-of-a-path--empty
  if (afterEmpty !== undefined && isOfClientApi(afterEmpty))
    return canonicalPath(afterEmpty) + query
  // @guard spellings-of-a-path--slashes
  if (merged.includes('//')) return url
  // @guard spellings-of-a-path--escapes
  if (ESCAPED_BASE.test(merged)) return merged.replaceAll('%', '%25') + query
  return canonicalPath(merged) + query
}

/** Files that a listener serves in addition to the APIs, below a path like `/console`. */
interface Mounted {
  readonly path: string
}

/** Like `canonicalUrl`, but leaves paths below the file mounts unchanged. */
export function createUrlCanonicalizer(mounts: readonly Mounted[]): typeof canonicalUrl {
  if (mounts.length === 0) return canonicalUrl
  return (request) => {
    const { url = '/' } = request
    return mounts.some((mount) => isBelowFileMount(mount, url)) ? url : canonicalUrl(request)
  }
}

/** @param url URL of a request, with or without a query. */
export function isBelowFileMount({ path }: Mounted, url: string): boolean {
  return url.startsWith(path) && /^(?:$|[/?])/.test(url.slice(path.length))
}

function canonicalPath(path: string): string {
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  if (isUnder(trimmed, CLIENT_ALIAS)) return basePaths.client + trimmed.slice(CLIENT_ALIAS.length)
  if (!isOfClientApi(trimmed)) return trimmed
  return trimmed === '/' ? basePaths.client : basePaths.client + trimmed
}

/** Whether the path belongs to the client API: its first segment is not one of `ROOTS`. */
function isOfClientApi(path: string): boolean {
  return !ROOTS.some((root) => isUnder(path, root))
}

function isUnder(path: string, root: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path[root.length] === '/')
}

/** The path in the syntax of Fastify's router: `/services/:id` for `/services/{id}`. */
export function fastifyRoutePath(path: string): string {
  return path.replace(/\{([A-Za-z]+)\}/g, ':$1')
}
