/** Entity tags in one header; a header with more is refused. */
export const ETAGS_MAX = 32

/**
 * Whether If-None-Match names that ETag. A list of tags is compared weakly (RFC 9110 13.1.2): a
 * cache may have made ours weak.
 */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',', ETAGS_MAX).some((tag) => tag.trim().replace(/^W\//, '') === etag)
}

/** The revisions that a write may find; 'any': the record has to be there. */
export type Precondition = readonly number[] | 'any'
