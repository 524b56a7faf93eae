interface Branch {
  readonly byName: Map<string, Branch>
  /** Branch for a path parameter, which matches any segment that is not empty. */
  any: Branch | null
  isServed: boolean
}

const newBranch = (): Branch => ({ byName: new Map(), any: null, isServed: false })

/**
 * All served paths, regardless of the method. If a request matches no route, these paths
 * distinguish an unknown path (404) from a wrong method (405). Routes for the refused methods would
 * be five sixths of all routes, and take a fifth of the processor time at startup.
 */
export class ServedPaths {
  readonly #root = newBranch()

  /** @param path in the syntax of operations: `/edge/client/v1/services/{id}`. */
  add(path: string): void {
    let branch = this.#root
    for (const segment of path.split('/')) branch = below(branch, segment)
    branch.isServed = true
  }

  /** @param url URL of a request, with or without a query. */
  has(url: string): boolean {
    const end = url.indexOf('?')
    const segments = (end === -1 ? url : url.slice(0, end)).split('/').map(decoded)
    return isServed(this.#root, segments, 0)
  }
}

function below(branch: Branch, segment: string): Branch {
  if (segment.startsWith('{')) return (branch.any ??= newBranch())
  const known = branch.byName.get(segment)
  if (known !== undefined) return known
  const made = newBranch()
  branch.byName.set(segment, made)
  return made
}

/** Whether the path is served. Reads no more segments than the longest served path has. */
function isServed(branch: Branch, segments: readonly string[], at: number): boolean {
  const segment = segments[at]
  if (segment === undefined) return branch.isServed
  const named = branch.byName.get(segment)
  if (named !== undefined && isServed(named, segments, at + 1)) return true
  return branch.any !== null && segment !== '' && isServed(branch.any, segments, at + 1)
}

function decoded(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
