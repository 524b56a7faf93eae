/**
 * Maximum entity tags in one header. An If-Match header with more is refused; further tags of an
 * If-None-Match header are ignored.
 */
export const ETAGS_MAX = 32

/**
 * Whether If-None-Match contains the ETag. Tags are compared weakly (RFC 9110 13.1.2), because a
 * cache may have made the ETag weak.
 */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',', ETAGS_MAX).some((tag) => tag.trim().replace(/^W\//, '') === etag)
}

/**
 * Condition of an If-Match header: the record must have one of these revisions; 'any': the record
 * must exist.
 */
export type IfMatchPrecondition = readonly number[] | 'any'
