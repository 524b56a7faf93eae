export interface PathRouter {
  readonly id: string
  readonly name: string
  readonly isOffline?: boolean
}

/** The routers of a circuit's path, in order. */
export function pathRouters(path: unknown): readonly PathRouter[] {
  const { nodes } = (path ?? {}) as { readonly nodes?: unknown }
  if (!Array.isArray(nodes)) return []
  return nodes.flatMap((node: unknown) => {
    const { id, name, isOffline } = (node ?? {}) as Readonly<Record<string, unknown>>
    if (typeof id !== 'string') return []
    const router = { id, name: typeof name === 'string' ? name : '' }
    return [isOffline === true ? { ...router, isOffline } : router]
  })
}

/** The path of a circuit in which these routers are marked as offline. */
export function markOffline(path: unknown, offlineIds: ReadonlySet<string>): unknown {
  const nodes = pathRouters(path).map((router) => ({
    ...router,
    isOffline: offlineIds.has(router.id),
  }))
  return { ...(path as object | null), nodes }
}
