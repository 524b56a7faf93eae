export interface PathRouter {
  readonly id: string
  readonly name: string
}

/** The routers of a circuit's path, in order. */
export function pathRouters(path: unknown): readonly PathRouter[] {
  const { nodes } = (path ?? {}) as { readonly nodes?: unknown }
  if (!Array.isArray(nodes)) return []
  return nodes.flatMap((node: unknown) => {
    const { id, name } = (node ?? {}) as { readonly id?: unknown; readonly name?: unknown }
    return typeof id === 'string' ? [{ id, name: typeof name === 'string' ? name : '' }] : []
  })
}
